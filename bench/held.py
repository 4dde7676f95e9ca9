"""A snapshot that somebody holds: dead rows pile up at the head of the queue, beside a database where nobody does."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from statistics import median

import psycopg

from bench.backlog import add
from bench.paired import ratio
from bench.plan import Plan
from bench.probe import BATCH, Probe
from bench.server import Server
from bench.statement import statement
from bench.table import Table, number, times

PASSING, SPARE, BLOCK = 300_000, 20_000, 10_000
STRETCHES = ((0, 100_000), (100_000, 200_000), (200_000, 300_000))


class Passing:
    """A database through which notifications pass, a block at a time: by a run a block, or one run for all."""

    def __init__(
        self, url: str, runner: asyncio.Runner, rows: int, *, held: bool, one_run: bool = False
    ) -> None:
        self._runner = runner
        self._one_run = one_run
        self._probe = Probe(url)
        self._holder = psycopg.connect(url)
        self.rates: list[float] = []
        with psycopg.connect(url, autocommit=True) as connection:
            add(connection, rows, "due-")
            connection.execute("vacuum analyze")
        runner.run(self._probe.begin())
        runner.run(self._probe.warm(5))
        if held:
            self._holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._holder.execute(statement("hold_snapshot"))

    def pass_block(self, rows: int) -> None:
        began = time.perf_counter()
        self._runner.run(self._passed(rows))
        self.rates.append(rows / (time.perf_counter() - began))

    async def _passed(self, rows: int) -> None:
        if not self._one_run:
            await self._probe.begin_anew()
        for _ in range(rows // BATCH):
            await self._probe.timed(claim=True)

    def close(self) -> None:
        self._runner.run(self._probe.store.close())
        self._holder.close()


def held_snapshot(server: Server, plan: Plan) -> Table:
    with asyncio.Runner() as runner, contextlib.ExitStack() as stack:

        def passing(**how: bool) -> Passing:
            url, rows = stack.enter_context(server.database()), plan.rows(PASSING) + SPARE
            made = Passing(url, runner, rows, **how)
            stack.callback(made.close)
            return made

        free, held = passing(held=False), passing(held=True)
        lasting = passing(held=True, one_run=True)
        block = min(BLOCK, plan.rows(PASSING) // 6)
        order = (free, held, lasting)
        for turn in range(plan.rows(PASSING) // block):
            for one in order if turn % 2 == 0 else reversed(order):
                one.pass_block(block)
        rows = [_row(plan, block, stretch, free, held, lasting) for stretch in STRETCHES]
    return Table(
        title=f"A held snapshot, PostgreSQL {server.version}",
        columns=(
            "while these pass",
            "n/s, nobody holds one",
            "n/s, somebody does",
            "ratio",
            "and one run for all",
            "ratio",
        ),
        rows=rows,
        notes=(
            f"A run a block of {BLOCK // 1000}k, as ticks follow one another; in the last two columns one run for all, "
            f"longer than any in Lambda. Exchanges of {BATCH} + {BATCH}.",
            "Blocks in all the databases in turn. The snapshot is older than all that passes: "
            "no dead row may be removed, or skipped by the index.",
        ),
    )


def _row(
    plan: Plan, block: int, stretch: tuple[int, int], free: Passing, *held: Passing
) -> Sequence[str]:
    first, last = (plan.rows(PASSING) * end // PASSING // block for end in stretch)
    part = slice(first, max(last, first + 1))
    cells = [f"{stretch[0] // 1000}k to {stretch[1] // 1000}k", number(median(free.rates[part]))]
    for one in held:
        cells += number(median(one.rates[part])), times(ratio(one.rates[part], free.rates[part]))
    return cells
