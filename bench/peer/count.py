"""What a peer's worker tells: how many it was called for, and when first and last."""

import asyncio
import os
import sys
import time

from bench.member import tell

TELL_SECONDS = 0.05


class Count:
    """`hit` is all that a no-op does."""

    def __init__(self) -> None:
        self.done = 0
        self.first = self.last = 0.0

    def hit(self) -> None:
        self.last = time.monotonic()
        self.first = self.first or self.last
        self.done += 1

    async def tell(self) -> None:
        """For as long as we are listened to: the end of our input is the end of us."""
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, _end_with_our_input)
        while True:
            tell(progress=self.done, first=self.first, last=self.last)
            await asyncio.sleep(TELL_SECONDS)


def payload(number: int) -> dict[str, str]:
    return {"title": f"Order {number} has left", "body": "x" * 250}


def _end_with_our_input() -> None:
    sys.stdin.read()
    os._exit(0)
