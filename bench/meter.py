"""What a server spent: CPU of its backends from /proc, WAL and HOT updates from the server itself."""

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.statement import statement
from rig.ground import children_of

NANOSECONDS_A_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of the queue table so far, and how many of them were HOT."""

    all: int
    hot: int


def backends(connection: psycopg.Connection, name: str) -> list[int]:
    """The backends of the programs that call themselves so."""
    rows = connection.execute(statement("backends"), {"name": name}).fetchall()
    return [pid for (pid,) in rows]


def on_cpu_ns(pid: int) -> int:
    """Time on a CPU: what neighbours take is not in it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def whole_server_ns(postmaster: int) -> int:
    """The server with everything it ever started, ended backends too (in ticks of 10 ms)."""
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    ended = sum(int(ticks) for ticks in fields[11:15])  # utime, stime, cutime, cstime
    return ended * NANOSECONDS_A_TICK + sum(on_cpu_ns(pid) for pid in children_of(postmaster))


def wal_position(connection: psycopg.Connection) -> int:
    row = connection.execute(statement("wal_position")).fetchone()
    assert row is not None
    return int(row[0])


def queue_updates(connection: psycopg.Connection, schema: str) -> Updates:
    row = connection.execute(statement("queue_updates"), {"schema": schema}).fetchone()
    assert row is not None
    return Updates(*row)
