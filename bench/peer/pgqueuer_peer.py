"""pgqueuer: durable tables, its own autovacuum settings, uvloop, asyncpg. Logs every outcome."""

import asyncio
import json
import sys

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.member import await_word
from bench.peer.count import Count, payload

CHUNK = 5000


async def fill(url: str, rows: int) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    for start in range(0, rows, CHUNK):
        numbers = range(start, min(start + CHUNK, rows))
        bodies = [json.dumps(payload(number)).encode() for number in numbers]
        await queries.enqueue(["noop"] * len(bodies), bodies, [0] * len(bodies))
    await connection.close()


async def work(url: str, batch: int) -> None:
    connection = await asyncpg.connect(url)
    worker = PgQueuer(AsyncpgDriver(connection))
    count = Count()

    @worker.entrypoint("noop")
    async def noop(job: object) -> None:
        count.hit()

    telling = asyncio.create_task(count.tell())
    await worker.qm.run(batch_size=batch)
    await telling


if __name__ == "__main__":
    verb, url, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if verb == "work":
        await_word()
    uvloop.run(fill(url, number) if verb == "fill" else work(url, number))
