"""Timed turns of one run in one database: only a claim, a whole exchange, only settling; milliseconds."""

import time
from dataclasses import dataclass, field

from bench.drain import FencepostDrain

BATCH = 50


@dataclass(slots=True)
class Latencies:
    claim: list[float] = field(default_factory=list)
    exchange: list[float] = field(default_factory=list)


class Probe(FencepostDrain):
    """What it takes from the queue it settles; nothing is added while it is timed."""

    def __init__(self, url: str, batch: int = BATCH) -> None:
        super().__init__(url, batch)
        self.taken = Latencies()

    async def measure(self, turns: int) -> int:
        """Claim, settle and claim, settle; as often as wanted. How many rows that took."""
        for _ in range(turns):
            self.taken.claim.append(await self.timed(claim=True))
            self.taken.exchange.append(await self.timed(claim=True))
            await self.timed(claim=False)
        return 2 * self.batch * turns

    async def warm(self, turns: int) -> None:
        """The first exchanges of a connection make the plans."""
        await self.measure(turns)
        self.taken = Latencies()

    async def hold(self, rows: int) -> None:
        """Claim so many and leave them leased."""
        for _ in range(0, rows, self.batch):
            await self.timed(claim=True)
            self.words = ()

    async def timed(self, *, claim: bool) -> float:
        began = time.perf_counter()
        claimed = await self.say(claim=claim)
        took = (time.perf_counter() - began) * 1000
        if claim and len(claimed) != self.batch:
            raise RuntimeError(f"{len(claimed)} claimed instead of {self.batch}")
        self.words = tuple(self.word(row) for row in claimed)
        return took
