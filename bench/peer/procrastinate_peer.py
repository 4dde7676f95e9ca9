"""procrastinate: one statement a row; what is done is kept with its status."""

import asyncio
import logging
import sys

import uvloop
from procrastinate import App, PsycopgConnector

from bench.member import await_word
from bench.peer.count import Count, payload

CHUNK = 2000


def application(url: str, count: Count, connections: int) -> App:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=connections, max_size=connections))

    @app.task(name="noop", queue="noop")
    async def noop(**body: str) -> None:
        count.hit()

    return app


async def fill(url: str, rows: int) -> None:
    app = application(url, Count(), 2)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, rows, CHUNK):
            bodies = [payload(number) for number in range(start, min(start + CHUNK, rows))]
            await app.tasks["noop"].batch_defer_async(*bodies)


async def work(url: str, concurrency: int) -> None:
    count = Count()
    app = application(url, count, min(concurrency, 20))
    telling = asyncio.create_task(count.tell())
    async with app.open_async():
        await app.run_worker_async(concurrency=concurrency)
    await telling


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    verb, url, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if verb == "work":
        await_word()
    uvloop.run(fill(url, number) if verb == "fill" else work(url, number))
