"""What the database says, counted from its tables by statements of the demo's own (sql/*.sql), not by the product."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

STATEMENTS = {file.stem: file.read_bytes() for file in (Path(__file__).parent / "sql").iterdir()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The database's side of the final table."""

    enqueued: int
    open: int
    closed: int
    misplaced: int  # neither open nor closed, or both; must be 0
    leased: int
    delivered: int
    dead: int
    held: int
    retried: int
    taken_over: int
    late_words: int
    late_evidence: int
    runs: int
    overlapping: int  # most runs at one time


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    open: int
    leased: int
    in_doubt: int
    delivered: int
    parked: int
    taken_over: int
    late_words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """A row that the run of some tick holds now."""

    dedupe_key: str
    notification_id: int
    fence: int
    claimed_at: float  # seconds since the epoch, by the database's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of the rows the run of some tick held."""

    taken_over: int
    late_words: int
    example: int | None  # a notification it spoke of too late


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRow:
    dedupe_key: str
    kind: str
    fence: int
    reason: str | None


class Book:
    """Reads the demo's database through one connection of its own."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def account(self) -> Account:
        return Account(**self._rows("account")[0])

    def progress(self) -> Progress:
        return Progress(**self._rows("progress")[0])

    def held_by(self, invocation: str) -> list[HeldRow]:
        return [HeldRow(**row) for row in self._rows("held", invocation=invocation)]

    def fate_of(self, invocation: str) -> Fate:
        return Fate(**self._rows("fate", invocation=invocation)[0])

    def closed(self) -> list[ClosedRow]:
        return [ClosedRow(**row) for row in self._rows("kinds")]

    def close(self) -> None:
        self._connection.close()

    def _rows(self, statement: str, **values: object) -> list[dict[str, Any]]:
        return self._connection.execute(STATEMENTS[statement], values).fetchall()


@contextlib.contextmanager
def own_database(server_url: str) -> Iterator[str]:
    """A database of the demo's own on that server; dropped afterwards."""
    name = f"fencepost_demo_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    try:
        yield make_conninfo(server_url, dbname=name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
