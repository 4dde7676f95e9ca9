"""A worker of the database path: claims, "sends" by doing nothing, says it was delivered, until nothing is due.

`python -m bench.drain DESIGN BATCH URL`. DESIGN: `plain` (two statements), `fencepost` (the store of the worker, with
the facts a webhook leaves) or `bare` (the same without facts).
"""

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable

import psycopg

from bench.member import await_end, await_word, tell
from bench.server import INSTALLATION, VERSION
from bench.statement import statement
from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import NO_FACTS, Exchange, Facts, RunStart, Word
from fencepost.core.gate import Gate
from fencepost.core.notification import AttemptOutcome, Claimed, Kind, RunId
from fencepost.core.reply import Phase
from fencepost.store.postgres import PostgresStore

PRIORITIES = [0, 1, 2]
LEASE_SECONDS = 600.0
FACTS = Facts(phase=Phase.ANSWERED, status=200, digest=bytes(range(16)), took_ms=100)

Turn = Callable[[], Awaitable[int]]  # one more batch; how many rows it claimed


class FencepostDrain:
    """One run of the product's store."""

    def __init__(self, url: str, batch: int, facts: Facts = FACTS) -> None:
        self.store = PostgresStore(url, exchange_timeout_seconds=60)
        self.batch, self.facts = batch, facts
        self.run = RunId(uuid.uuid4())
        self.seq = 0
        self.words: tuple[Word, ...] = ()
        self.gate: Gate | None = None  # the worker's own: it decides which claims go without a hint

    async def begin_anew(self) -> None:
        """Another run over the same connection, as the next tick's; this one says what it still knows."""
        await self.say(claim=False)
        self.run, self.seq, self.words = RunId(uuid.uuid4()), 0, ()
        await self.begin()

    async def begin(self) -> tuple[Channel, ...]:
        start = RunStart(
            run=self.run,
            installation=INSTALLATION,
            version=VERSION,
            invocation="bench",
            deadline_in_seconds=3600,
        )
        channels = (await self.store.start_run(start)).channels
        self.gate = Gate(channels[0], Facility(), time.monotonic())
        return channels

    async def turn(self) -> int:
        """Settle what the last one claimed, and claim."""
        claimed = await self.say(claim=True)
        self.words = tuple(self.word(row) for row in claimed)
        return len(self.words)

    async def say(self, *, claim: bool) -> tuple[Claimed, ...]:
        assert self.gate is not None
        self.seq += 1
        wants = (self.gate.want(self.batch),) if claim else ()
        answer = await self.store.exchange(
            Exchange(
                run=self.run,
                seq=self.seq,
                lease_seconds=LEASE_SECONDS,
                settle=self.words,
                claim=wants,
            )
        )
        for want in wants:
            gate_answer = answer.gates.get(want.channel)
            self.gate.claimed(want, len(answer.claimed), gate_answer, time.monotonic())
        return answer.claimed

    def word(self, claimed: Claimed) -> Word:
        return Word(
            id=claimed.id,
            fence=claimed.fence,
            outcome=AttemptOutcome.DELIVERED,
            kind=Kind.DELIVERED,
            facts=self.facts,
        )


class PlainDrain:
    """The two statements."""

    def __init__(self, url: str, batch: int) -> None:
        self.url, self.batch = url, batch
        self.connection: psycopg.AsyncConnection | None = None

    async def begin(self) -> None:
        self.connection = await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, prepare_threshold=None
        )
        await self.connection.execute("select 1")

    async def turn(self) -> int:
        assert self.connection is not None
        asked = {"n": self.batch, "ttl": f"{LEASE_SECONDS} s", "prios": PRIORITIES}
        claim = await self.connection.execute(statement("plain_claim"), asked)
        rows = await claim.fetchall()
        if rows:
            held = sorted((row[0], row[1]) for row in rows)
            said = {
                "ids": [id for id, _ in held],
                "fences": [fence for _, fence in held],
                "outs": [1] * len(held),
            }
            finish = await self.connection.execute(statement("plain_finish"), said)
            await finish.fetchall()
        return len(rows)


def drain_of(design: str, batch: int, url: str) -> FencepostDrain | PlainDrain:
    if design == "plain":
        return PlainDrain(url, batch)
    return FencepostDrain(url, batch, NO_FACTS if design == "bare" else FACTS)


async def main(design: str, batch: int, url: str) -> None:
    drain = drain_of(design, batch, url)
    await drain.begin()
    await_word()
    began, cpu_began, rows, turns = time.monotonic(), time.process_time(), 0, 0
    while taken := await drain.turn():
        rows, turns = rows + taken, turns + 1
    tell(
        done=True,
        rows=rows,
        turns=turns,
        began=began,
        ended=time.monotonic(),
        cpu=time.process_time() - cpu_began,
    )
    await_end()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
