"""How long an exchange and a claim take while the queue is in a bad state, each beside the plain case."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import psycopg

from bench.backlog import (
    DEEP,
    HOLD_BATCH,
    PLAIN,
    PLAIN_ROWS,
    STATES,
    State,
    add,
    fill,
    lease_the_head,
)
from bench.held import held_snapshot
from bench.paired import quantile
from bench.plan import Plan
from bench.probe import BATCH, Probe
from bench.server import Server, available, running
from bench.table import Table, times

BLOCKS, TURNS, WARM_TURNS, EMPTY_TURNS = 10, 20, 5, 10


class Case:
    """One state's database, an open run in it, and what was measured there."""

    def __init__(
        self, state: State, url: str, runner: asyncio.Runner, scaled: Callable[[int], int]
    ) -> None:
        self.state = state
        self.probe = Probe(url)
        self._runner = runner
        self._connection = psycopg.connect(url, autocommit=True)
        self._refills = 0
        runner.run(self.probe.begin())
        if state.cached:
            self._make_plans_on_nothing()
        if state.leased:
            leased = scaled(state.leased) // HOLD_BATCH * HOLD_BATCH or HOLD_BATCH
            add(self._connection, leased, "leased-", ahead="-1 hour")
            lease_the_head(runner, url, leased)
        fill(self._connection, state, scaled)
        runner.run(self.probe.warm(WARM_TURNS))

    def block(self) -> None:
        """Measure a little, and put back as many rows as that took."""
        taken = self._runner.run(self.probe.measure(TURNS))
        self._refills += 1
        add(self._connection, taken, f"again-{self._refills}-")

    def close(self) -> None:
        self._runner.run(self.probe.store.close())
        self._connection.close()

    def _make_plans_on_nothing(self) -> None:
        """The normal state of a quiet system: empty, vacuumed, and a warm session that has asked already."""
        add(self._connection, BATCH * (EMPTY_TURNS + 1) * 2, "before-")
        self._runner.run(self.probe.warm(EMPTY_TURNS + 1))
        self._connection.execute("vacuum analyze")


def measure(plan: Plan) -> list[Table]:
    tables = []
    for name, binaries in available().items():
        if name in plan.servers:
            with running(binaries) as server:
                tables += [_states(server, plan), held_snapshot(server, plan)]
    return tables


def _states(server: Server, plan: Plan) -> Table:
    states = (*STATES, DEEP) if plan.deep else STATES
    with asyncio.Runner() as runner, contextlib.ExitStack() as stack:
        cases = []
        for state in states:
            url = stack.enter_context(server.database())
            case = Case(state, url, runner, partial(plan.rows, at_least=PLAIN_ROWS))
            stack.callback(case.close)
            cases.append(case)
        for block in range(max(2, round(BLOCKS * min(1, plan.scale * 10)))):
            for case in cases if block % 2 == 0 else reversed(cases):
                case.block()
        return _table(server, cases)


def _table(server: Server, cases: Sequence[Case]) -> Table:
    plain = next(case for case in cases if case.state == PLAIN).probe.taken
    rows = [
        (
            case.state.name,
            _spread(case.probe.taken.exchange),
            times(median(case.probe.taken.exchange) / median(plain.exchange)),
            _spread(case.probe.taken.claim),
            times(median(case.probe.taken.claim) / median(plain.claim)),
            times(quantile(case.probe.taken.claim, 0.99) / quantile(plain.claim, 0.99)),
        )
        for case in cases
    ]
    return Table(
        title=f"Latency, PostgreSQL {server.version}",
        columns=(
            "queue",
            f"exchange of {BATCH} + {BATCH}, p50 / p99 ms",
            "p50 against plain",
            f"claim of {BATCH}, p50 / p99 ms",
            "p50 against plain",
            "p99 against plain",
        ),
        rows=rows,
        notes=(
            f"Blocks of {TURNS} turns in all the databases in turn; what a block took is put back before its next one. "
            "Start hints as the worker uses them: every 20th claim, once a second at most, looks from the start.",
        ),
    )


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} / {quantile(values, 0.99):.2f}"
