"""The same rows and the same sender with no database in between: `python -m bench.bare URL SLOTS CORE`.

What is due is claimed before the clock starts and settled after it has stopped; between, each of SLOTS takes the next
row as soon as its last one is answered. No loop around this transport can be faster against this provider.
"""

import asyncio
import os
import sys
import time

from bench.drain import FencepostDrain
from bench.member import await_end, await_word, tell
from bench.waves import sent
from fencepost.core.exchange import Word
from fencepost.core.notification import Claimed
from fencepost.ports import Sender
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import read_secret

CLAIM = 1000


async def bare(url: str, slots: int) -> dict[str, float]:
    run = FencepostDrain(url, CLAIM)
    registry = SenderRegistry(read_secret, Transport())
    sender = registry.sender((await run.begin())[0])
    claimed = await everything(run)
    began, cpu_began = time.monotonic(), time.process_time()
    words = await sends(sender, claimed, slots)
    ended, cpu = time.monotonic(), time.process_time() - cpu_began
    for start in range(0, len(words), CLAIM):
        run.words = tuple(words[start : start + CLAIM])
        await run.say(claim=False)
    await registry.close()
    await run.store.close()
    return {"began": began, "ended": ended, "cpu": cpu}


async def everything(run: FencepostDrain) -> list[Claimed]:
    claimed: list[Claimed] = []
    while rows := await run.say(claim=True):
        claimed.extend(rows)
    return claimed


async def sends(sender: Sender, claimed: list[Claimed], slots: int) -> list[Word]:
    rows, words = iter(claimed), list[Word]()

    async def one_after_the_other() -> None:
        for row in rows:
            if (word := await sent(sender, row)) is not None:
                words.append(word)

    await asyncio.gather(*(one_after_the_other() for _ in range(slots)))
    return words


def main(url: str, slots: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    await_word()
    tell(done=True, rss_mib=0.0, **asyncio.run(bare(url, slots)))
    await_end()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
