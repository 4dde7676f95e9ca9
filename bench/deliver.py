"""A worker that really sends: `python -m bench.deliver loop|waves URL SLOTS CORE`, pinned to one core.

`loop` is the product as the function runs it. `waves` says the same words with the same senders, but waits for the
slowest send of a batch before it says any of them: what the product's rhythm is compared with.
"""

import asyncio
import os
import resource
import sys
import time

from bench.member import await_end, await_word, tell
from bench.server import INSTALLATION
from bench.waves import waves
from fencepost.bootstrap import make_worker
from fencepost.core.access import Database
from fencepost.core.line import Line
from fencepost.settings import Settings

REMAINING_SECONDS = 600.0


def loop(url: str) -> None:
    """One run of the product's worker, its lines thrown away."""
    settings = Settings(database=Database(url=url), installation=INSTALLATION)
    with make_worker(settings, lines=forget) as worker:
        worker.deliver(remaining_seconds=REMAINING_SECONDS, correlation="bench")


def forget(line: Line) -> None:
    """The log is not what is measured."""


def main(rhythm: str, url: str, slots: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    await_word()
    began, cpu_began = time.monotonic(), time.process_time()
    if rhythm == "loop":
        loop(url)
    else:
        asyncio.run(waves(url, slots))
    tell(
        done=True,
        began=began,
        ended=time.monotonic(),
        cpu=time.process_time() - cpu_began,
        rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    await_end()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
