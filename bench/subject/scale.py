"""Several runs at once: real runtimes of the deliver function on one queue, until nothing is due."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from bench import meter
from bench.load import load_fencepost
from bench.paired import interleaved, ratio
from bench.plan import Plan
from bench.server import INSTALLATION, SECRET, Server, available, running
from bench.statement import statement
from bench.subject.sends import ANSWER_MS, provider
from bench.table import Table, number, times
from rig.runtimes import Runtime

RUNS = (1, 2, 3, 4)
TIMEOUT_SECONDS = 300
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What some runs did with everything that was due; everything but the rate for one notification."""

    rate: float  # notifications a second, all runs together
    worker_ms: float  # CPU of the runtimes
    server_us: float  # CPU of PostgreSQL
    wal: float  # bytes, claim to closed
    enqueue_wal: float
    exchanges: float


def measure(plan: Plan) -> list[Table]:
    with running(available()["18"]) as server, provider("h2") as (folder, url):
        cases = ((10, plan.rows(900)), (100, plan.rows(6_000)))
        return [_scaled(server, plan, folder, url, slots, due) for slots, due in cases]


def _scaled(server: Server, plan: Plan, folder: Path, url: str, slots: int, due: int) -> Table:
    with ExitStack() as stack:
        database = stack.enter_context(server.database())
        runtimes = [stack.enter_context(_runtime(database, folder)) for _ in RUNS]
        connection = stack.enter_context(psycopg.connect(database, autocommit=True))
        connection.execute(statement("channel_slots"), {"slots": slots})
        _at_once(runtimes)  # a cold start is another subject's
        once = partial(_drained, server, connection, url, due)
        taken = interleaved({str(n): partial(once, runtimes[:n]) for n in RUNS}, plan.repeats)
    alone = [one.rate for one in taken["1"]]
    rows = [_row(n, slots, taken[str(n)], alone) for n in RUNS]
    return Table(
        title=f"Runs at once, {slots} slots each, {ANSWER_MS} ms answers, PostgreSQL {server.version}",
        columns=(
            "runs",
            "n/s",
            "against one",
            "of ideal",
            "CPU ms/n, runs",
            "CPU us/n, server",
            "WAL B/n",
            "enqueue WAL B/n",
            "exchanges/n",
        ),
        rows=rows,
        notes=(
            f"Real runtimes (emulator, interpreter, handler), warm, on one queue of {due:,}; PostgreSQL, the provider "
            "(TLS, h2) and the bench itself share the machine's cores with them.",
            "Ideal: runs x slots / answer time. n: a notification.",
        ),
    )


def _row(
    runs: int, slots: int, taken: Sequence[Drained], alone: Sequence[float]
) -> tuple[str, ...]:
    rate = median(one.rate for one in taken)
    return (
        str(runs),
        number(rate),
        times(ratio([one.rate for one in taken], alone)),
        f"{rate / (runs * slots * 1000 / ANSWER_MS):.0%}",
        f"{median(one.worker_ms for one in taken):.2f}",
        number(median(one.server_us for one in taken)),
        number(median(one.wal for one in taken)),
        number(median(one.enqueue_wal for one in taken)),
        f"{median(one.exchanges for one in taken):.3f}",
    )


def _drained(
    server: Server, connection: psycopg.Connection, url: str, due: int, runtimes: list[Runtime]
) -> Drained:
    closed = _count(connection, "finished_fencepost")
    exchanges = _count(connection, "run_exchanges")
    empty = meter.wal_position(connection)
    load_fencepost(connection, due, lambda number: f"{url}/after/{ANSWER_MS:04}", after=closed)
    enqueued = meter.wal_position(connection)
    connection.execute("vacuum analyze")
    wal, server_ns = meter.wal_position(connection), meter.whole_server_ns(server.pid)
    cpu, began = _cpu_seconds(runtimes), time.monotonic()
    _at_once(runtimes)
    seconds = time.monotonic() - began
    if _count(connection, "finished_fencepost") - closed != due:
        raise RuntimeError(f"{len(runtimes)} runs: {due} were due and fewer were delivered")
    return Drained(
        rate=due / seconds,
        worker_ms=(_cpu_seconds(runtimes) - cpu) / due * 1000,
        server_us=(meter.whole_server_ns(server.pid) - server_ns) / due / 1000,
        enqueue_wal=(enqueued - empty) / due,
        wal=(meter.wal_position(connection) - wal) / due,
        exchanges=(_count(connection, "run_exchanges") - exchanges) / due,
    )


def _runtime(database: str, folder: Path) -> Runtime:
    environment = {
        "DATABASE_URL": database,
        "FENCEPOST_INSTALLATION": INSTALLATION,
        "BENCH_SECRET": SECRET,
        "SSL_CERT_FILE": str(folder / "ca.pem"),
    }
    return Runtime(environment, timeout_seconds=TIMEOUT_SECONDS, folder=folder, name="scale")


def _at_once(runtimes: Sequence[Runtime]) -> None:
    with ThreadPoolExecutor(len(runtimes)) as threads:
        for invoked in threads.map(lambda one: one.invoke({"id": "bench"}), runtimes):
            if invoked.summary is None or not invoked.summary["drained"]:
                raise RuntimeError(f"a run did not get through: {invoked}")


def _cpu_seconds(runtimes: Sequence[Runtime]) -> float:
    """Of their interpreters, all threads."""
    pids = [pid for runtime in runtimes if (pid := runtime.pid()) is not None]
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(ticks) for fields in stats for ticks in fields[11:13]) / TICKS_A_SECOND


def _count(connection: psycopg.Connection, name: str) -> int:
    row = connection.execute(statement(name)).fetchone()
    assert row is not None
    return int(row[0])
