"""One round of the database path: fill, analyse, drain with some workers, and read the meters."""

import os
import sys
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from bench import meter
from bench.crew import Crew, Told
from bench.load import load_fencepost, load_plain
from bench.server import Server
from bench.statement import statement
from rig.ground import wait_until

WORKER = "bench-drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A drained queue; everything for one notification."""

    rate: float  # notifications a second
    backend_us: float
    server_us: float  # its other helpers too
    client_us: float
    wal: float  # bytes, claim to closed
    enqueue_wal: float
    hot: float  # share of queue updates


def drain_round(server: Server, design: str, *, batch: int, workers: int, rows: int) -> Round:
    with (
        server.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("checkpoint")
        empty = meter.wal_position(connection)
        (load_plain if design == "plain" else load_fencepost)(connection, rows)
        enqueued = meter.wal_position(connection)
        connection.execute("vacuum analyze")
        full = meter.wal_position(connection)
        server_ns = meter.whole_server_ns(server.pid)
        told, backend_ns = _drained(connection, url, design, batch, workers)
        server_ns = meter.whole_server_ns(server.pid) - server_ns
        drained = meter.wal_position(connection)
        _check_nothing_lost(connection, design, rows, sum(one["rows"] for one in told))
        updates = _updates(connection, design)
    seconds = max(one["ended"] for one in told) - min(one["began"] for one in told)
    return Round(
        rate=rows / seconds,
        backend_us=backend_ns / rows / 1000,
        server_us=server_ns / rows / 1000,
        client_us=sum(one["cpu"] for one in told) / rows * 1e6,
        wal=(drained - full) / rows,
        enqueue_wal=(enqueued - empty) / rows,
        hot=updates.hot / updates.all,
    )


def _drained(
    connection: psycopg.Connection, url: str, design: str, batch: int, workers: int
) -> tuple[list[Told], int]:
    command = [sys.executable, "-m", "bench.drain", design, str(batch)]
    named = make_conninfo(url, application_name=WORKER)
    with Crew([[*command, named]] * workers, {"PYTHONPATH": os.pathsep.join(sys.path)}) as crew:
        crew.await_ready()
        pids = meter.backends(connection, WORKER)
        before = sum(meter.on_cpu_ns(pid) for pid in pids)
        crew.say("go")
        told = crew.results()
        spent = sum(meter.on_cpu_ns(pid) for pid in pids) - before
    return told, spent


def _check_nothing_lost(
    connection: psycopg.Connection, design: str, rows: int, claimed: int
) -> None:
    row = connection.execute(statement("finished_" + _schema(design))).fetchone()
    assert row is not None
    if row[0] != rows or claimed != rows:
        raise RuntimeError(f"{design}: {rows} rows, {claimed} claimed, {row[0]} finished")


def _updates(connection: psycopg.Connection, design: str) -> meter.Updates:
    """A backend hands in its counts when it ends."""
    wait_until(lambda: not meter.backends(connection, WORKER), 10, "the workers' backends to end")
    return meter.queue_updates(connection, _schema(design))


def _schema(design: str) -> str:
    return "plain" if design == "plain" else "fencepost"
