"""A million rows through the backfill function: a real runtime, a queue, a file in S3; time, messages, memory, WAL."""

import json
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.meter import wal_position
from bench.plan import Plan
from bench.server import INSTALLATION, SECRET, Server, available, running
from bench.statement import statement
from bench.table import Table, number
from rig.event_source import Cloud, EventSource, Queue, local_cloud
from rig.ground import ROOT, wait_until
from rig.runtimes import Runtime

ROWS = 1_000_000
FUNCTION_SECONDS = 60  # as the template has it
PATIENCE_SECONDS = 3600.0
MIB = 1024 * 1024
TITLE = "Your order has left our warehouse and is on its way to you"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one command took."""

    what: str
    rows: int
    seconds: float
    messages: int
    peak_mib: float
    wal_bytes: int


class Site:
    """One database, one queue, one bucket, one runtime."""

    def __init__(self, cloud: Cloud, url: str, folder: Path) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.s3 = cloud.client("s3")
        self.bucket = f"bench-{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=self.bucket)
        self.queue = Queue.create(cloud, visibility_seconds=6 * FUNCTION_SECONDS, receives_max=5)
        environment = {
            **cloud.environment,
            "DATABASE_URL": url,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "FENCEPOST_QUEUE_URL": self.queue.url,
            "BENCH_SECRET": SECRET,
        }
        self.runtime = Runtime(
            environment,
            timeout_seconds=FUNCTION_SECONDS,
            folder=folder,
            name="backfill",
            task_root=ROOT / "functions" / "backfill",
        ).start()

    def put(self, folder: Path, rows: int) -> Mapping[str, str]:
        """A file of so many lines in S3."""
        file = folder / "rows.jsonl"
        with file.open("w") as out:
            for row in range(rows):
                recipient = f"https://receiver.example.com/{row:012d}"
                payload = {"title": TITLE, "data": {"order": row}}
                line = {"recipient": recipient, "payload": payload, "dedupe_key": f"row-{row}"}
                out.write(json.dumps(line) + "\n")
        self.s3.upload_file(str(file), self.bucket, file.name)
        file.unlink()
        return {"bucket": self.bucket, "key": "rows.jsonl"}

    def measure(self, what: str, rows: int, **words: Any) -> Taken:
        """Send the command and see it through."""
        self.connection.execute("vacuum analyze")
        before, began = wal_position(self.connection), time.monotonic()
        command = {"version": 1, "command": what, "id": str(uuid.uuid4()), **words}
        self.queue.send(command)
        peak = 0.0

        def done() -> bool:
            nonlocal peak
            peak = max(peak, peak_mib(self.runtime.pid()))
            standing = self._standing()
            return standing is not None and standing[0] != "going" and self.queue.count() == 0

        with EventSource(self.queue, [self.runtime]):
            wait_until(done, PATIENCE_SECONDS, f"{what} of {rows} rows")
            seconds = time.monotonic() - began
        standing = self._standing()
        assert standing is not None
        self.connection.execute(statement("backfill_forget"))
        return Taken(
            what=what,
            rows=rows,
            seconds=seconds,
            messages=standing[1],
            peak_mib=peak,
            wal_bytes=wal_position(self.connection) - before,
        )

    def close_all_as(self, kind: str) -> None:
        self.connection.execute(statement("backfill_park"), {"kind": kind})

    def count(self) -> tuple[int, int]:
        row = self.connection.execute(statement("backfill_count")).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def end(self) -> None:
        self.runtime.end()
        self.connection.close()

    def _standing(self) -> tuple[str, int, str] | None:
        return self.connection.execute(statement("backfill_standing")).fetchone()


def measure(plan: Plan) -> list[Table]:
    newest = max(plan.servers, key=int)
    with running(available()[newest]) as server, local_cloud() as cloud:
        return [_table(server, _taken(server, cloud, plan.rows(ROWS, at_least=5000)))]


def _taken(server: Server, cloud: Cloud, rows: int) -> list[Taken]:
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as name, server.database() as url:
        folder = Path(name)
        site = Site(cloud, url, folder)
        try:
            return _commands(site, folder, rows)
        finally:
            site.end()


def _commands(site: Site, folder: Path, rows: int) -> list[Taken]:
    enqueued = site.measure("enqueue", rows, s3=site.put(folder, rows), channel="push")
    assert site.count() == (rows, rows), site.count()
    site.close_all_as("dead")
    redriven = site.measure("redrive", rows, select={"reason": "attempts_exhausted"}, why="bench")
    assert site.count() == (rows, rows), site.count()
    site.close_all_as("delivered")
    replayed = site.measure("replay", rows, select={"channel": "push"})
    assert site.count() == (2 * rows, rows), site.count()
    return [enqueued, redriven, replayed]


def _table(server: Server, taken: list[Taken]) -> Table:
    rows = [
        (
            one.what,
            f"{one.rows:,}",
            number(one.seconds),
            number(one.rows / one.seconds),
            str(one.messages),
            number(one.peak_mib),
            number(one.wal_bytes / one.rows),
        )
        for one in taken
    ]
    return Table(
        title=f"Backfill, PostgreSQL {server.version}",
        columns=("command", "rows", "seconds", "rows/s", "messages", "peak MiB", "WAL bytes a row"),
        rows=rows,
        notes=(
            f"One runtime of {FUNCTION_SECONDS} s and one message that carries itself on; everything on this machine.",
            "Peak: most resident memory of the function's interpreter since it started (it stays warm).",
        ),
    )


def peak_mib(pid: int | None) -> float:
    """The most it ever had resident; 0 where there is none to ask."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0]) * 1024 / MIB if found else 0.0
