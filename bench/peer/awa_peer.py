"""awa: a runtime in Rust on its queue storage, handlers in Python. Keeps what is done, by receipt."""

import dataclasses
import sys

import awa
import uvloop

from bench.member import await_word
from bench.peer.count import Count, payload

CHUNK = 5000
CLAIMERS, PERMITS, CONNECTIONS = 4, 1000, 12


@dataclasses.dataclass
class Noop:
    title: str
    body: str


async def fill(url: str, rows: int) -> None:
    async with awa.AsyncClient(url) as client:
        await client.migrate()
        await client.install_queue_storage()
        for start in range(0, rows, CHUNK):
            numbers = range(start, min(start + CHUNK, rows))
            await client.enqueue_many_copy(
                [Noop(**payload(number)) for number in numbers], queue="noop"
            )


async def work(url: str, batch: int) -> None:
    client = awa.AsyncClient(url, max_connections=CONNECTIONS)
    count = Count()

    @client.task(Noop, queue="noop")
    async def noop(job: object) -> None:
        count.hit()

    queue = {
        "name": "noop",
        "max_workers": PERMITS,
        "claimers": CLAIMERS,
        "claim_batch_size": batch,
    }
    await client.start([queue], poll_interval_ms=10)
    await count.tell()


if __name__ == "__main__":
    verb, url, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if verb == "work":
        await_word()
    uvloop.run(fill(url, number) if verb == "fill" else work(url, number))
