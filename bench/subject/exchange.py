"""The database path: the product's exchange beside the two plain statements, sends that do nothing."""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench.drained import Round, drain_round
from bench.paired import interleaved, ratio
from bench.plan import Plan
from bench.server import Server, available, running
from bench.table import Table, number, times

ROWS = 60_000
CASES = ((50, 1), (50, 2), (200, 1), (200, 2))  # batch, workers
COLUMNS = (
    "batch, workers",
    "n/s against plain",
    "without facts",
    "plain n/s",
    "backend CPU µs/n: plain / ours",
    "WAL B/n claim → closed: plain / ours / without facts",
    "WAL B/n enqueue → closed: plain / ours",
    "HOT queue updates",
)
NOTES = (
    "Plain: bench/sql/plain_claim.sql and plain_finish.sql, two statements a batch on tables of their own.",
    "Ours: `PostgresStore.exchange`, one call a batch, every word `delivered` with the facts a webhook leaves "
    "(phase, status, digest, duration); *without facts*: the same with none.",
    "fsync and synchronous_commit on, jit at the server's default, statements unprepared, 300 bytes of payload, "
    "one row in ten of a higher priority. Rates are for orientation; ratios are medians of pairs.",
)


def measure(plan: Plan) -> list[Table]:
    tables = []
    for name, binaries in available().items():
        if name in plan.servers:
            with running(binaries) as server:
                tables.append(_table(server, plan))
    return tables


def _table(server: Server, plan: Plan) -> Table:
    rows = [_row(server, plan, batch, workers) for batch, workers in CASES]
    return Table(
        title=f"Database path, PostgreSQL {server.version}", columns=COLUMNS, rows=rows, notes=NOTES
    )


def _row(server: Server, plan: Plan, batch: int, workers: int) -> Sequence[str]:
    rows = plan.rows(ROWS)
    rounds: dict[str, Callable[[], Round]] = {
        design: partial(drain_round, server, design, batch=batch, workers=workers, rows=rows)
        for design in ("plain", "fencepost", "bare")
    }
    taken = interleaved(rounds, plan.repeats)
    plain, ours, bare = taken["plain"], taken["fencepost"], taken["bare"]
    rate = [one.rate for one in plain]
    return (
        f"{batch}, {workers}",
        times(ratio([one.rate for one in ours], rate)),
        times(ratio([one.rate for one in bare], rate)),
        number(median(rate)),
        f"{_mid(plain, 'backend_us')} / {_mid(ours, 'backend_us')}",
        f"{_mid(plain, 'wal')} / {_mid(ours, 'wal')} / {_mid(bare, 'wal')}",
        f"{_whole(plain)} / {_whole(ours)}",
        f"{median(one.hot for one in ours):.1%}",
    )


def _mid(rounds: Sequence[Round], name: str) -> str:
    return number(median(getattr(one, name) for one in rounds))


def _whole(rounds: Sequence[Round]) -> str:
    return number(median(one.enqueue_wal + one.wal for one in rounds))
