"""The queues people use, beside ours: no-op work, each at its own fastest settings and its best batch, two workers."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import psycopg

from bench import meter
from bench.crew import Crew
from bench.drained import drain_round
from bench.paired import interleaved, ratio
from bench.peer.place import NODE, PEERS, PYTHON
from bench.plan import Plan
from bench.server import Server, available, running
from bench.table import Table, number, times
from rig.ground import ROOT

WORKERS = 2
VACUUMING = {
    "autovacuum": "on",
    "autovacuum_naptime": "5s",
}  # most of them update in place, and need it
OURS = (50, 200, 500)
PEER_FOLDER = ROOT / "bench" / "peer"
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PEERS": str(PEERS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`records`: whether the outcome of each can be read afterwards. `rows` at full scale."""

    name: str
    command: Sequence[str]
    records: bool
    batches: Sequence[int]
    rows: int


def _python(module: str) -> Sequence[str]:
    return (str(PYTHON), "-m", f"bench.peer.{module}")


def _node(file: str) -> Sequence[str]:
    return (str(NODE), str(PEER_FOLDER / file))


PEERS_MEASURED = (
    Peer(
        name="graphile-worker 0.18.0",
        command=_node("graphile.mjs"),
        records=False,
        batches=(200, 500),
        rows=60_000,
    ),
    Peer(
        name="pg-boss 12.38.0",
        command=_node("pgboss.mjs"),
        records=True,
        batches=(200, 500),
        rows=40_000,
    ),
    Peer(
        name="pgqueuer 1.6.0",
        command=_python("pgqueuer_peer"),
        records=True,
        batches=(200, 500),
        rows=40_000,
    ),
    Peer(
        name="awa-pg 0.6.9",
        command=_python("awa_peer"),
        records=True,
        batches=(200, 500),
        rows=40_000,
    ),
    Peer(
        name="procrastinate 3.10.0",
        command=_python("procrastinate_peer"),
        records=True,
        batches=(20, 50),
        rows=4_000,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """For one row."""

    rate: float
    server_us: float  # everything the server did, not only its backends
    wal: float


def measure(plan: Plan) -> list[Table]:
    if not (PYTHON.exists() and NODE.exists()):
        raise SystemExit("the other queues are not installed: make bench-peers")
    with running(available()["18"], settings=VACUUMING) as server:
        return [_table(server, plan)]


def _table(server: Server, plan: Plan) -> Table:
    rounds: dict[str, Callable[[], Worked]] = {
        _key("ours", batch): partial(_ours, server, batch, plan.rows(60_000)) for batch in OURS
    }
    for peer in PEERS_MEASURED:
        for batch in peer.batches:
            rounds[_key(peer.name, batch)] = partial(
                _theirs, server, peer, batch, plan.rows(peer.rows)
            )
    taken = interleaved(rounds, plan.repeats)
    ours = max((_key("ours", batch) for batch in OURS), key=lambda key: _rate(taken[key]))
    rows = [_row("Fencepost", "yes", ours, taken, ours)]
    for peer in PEERS_MEASURED:
        best = max(
            (_key(peer.name, batch) for batch in peer.batches), key=lambda key: _rate(taken[key])
        )
        rows.append(_row(peer.name, "yes" if peer.records else "no", best, taken, ours))
    return Table(
        title=f"Peers, two workers, PostgreSQL {server.version}",
        columns=(
            "queue",
            "records outcomes",
            "best batch",
            "rows/s",
            "ours is faster by",
            "server CPU µs/row",
            "WAL B/row",
        ),
        rows=rows,
        notes=(
            "Rates of the others: from the first to the last no-op, so that writing the last outcomes is "
            "not counted; ours: until the last is closed.",
            "Features differ from queue to queue; settings are in bench/peer/.",
            "Their own word: awa-pg's README, about 5,000 a second with handlers in Python; pgqueuer's benchmark page, "
            "6,400 to 18,000. procrastinate says two statements for each row, one row at a time.",
        ),
    )


def _key(name: str, batch: int) -> str:
    return f"{name} at {batch}"


def _rate(taken: Sequence[Worked]) -> float:
    return median(one.rate for one in taken)


def _row(
    name: str, records: str, key: str, taken: dict[str, list[Worked]], ours: str
) -> Sequence[str]:
    worked = taken[key]
    faster = ratio([one.rate for one in taken[ours]], [one.rate for one in worked])
    return (
        name,
        records,
        key.rpartition(" ")[2],
        number(_rate(worked)),
        "" if key == ours else times(faster),
        number(median(one.server_us for one in worked)),
        number(median(one.wal for one in worked)),
    )


def _ours(server: Server, batch: int, rows: int) -> Worked:
    drained = drain_round(server, "fencepost", batch=batch, workers=WORKERS, rows=rows)
    return Worked(rate=drained.rate, server_us=drained.server_us, wal=drained.wal)


def _theirs(server: Server, peer: Peer, batch: int, rows: int) -> Worked:
    environment = {**os.environ, **ENVIRONMENT}
    with (
        server.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("checkpoint")
        fill = [*peer.command, "fill", url, str(rows)]
        subprocess.run(fill, env=environment, cwd=ROOT, check=True, stdout=sys.stderr)
        connection.execute("vacuum analyze")
        with Crew([[*peer.command, "work", url, str(batch)]] * WORKERS, ENVIRONMENT) as crew:
            crew.await_ready()
            wal, spent = meter.wal_position(connection), meter.whole_server_ns(server.pid)
            crew.say("go")
            seconds = _until_all_are_done(crew, rows)
            spent = meter.whole_server_ns(server.pid) - spent
            wal = meter.wal_position(connection) - wal
    return Worked(rate=rows / seconds, server_us=spent / rows / 1000, wal=wal / rows)


def _until_all_are_done(crew: Crew, rows: int) -> float:
    """Seconds from the first to the last."""
    progress: dict[int, dict[str, float]] = {}
    while sum(one["progress"] for one in progress.values()) < rows:
        progress.update(dict(crew.listen()))
    worked = [one for one in progress.values() if one["progress"]]
    return max(one["last"] for one in worked) - min(one["first"] for one in worked)
