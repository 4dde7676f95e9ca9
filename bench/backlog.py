"""Databases in states a queue gets into."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from bench.probe import Probe
from bench.statement import statement

PLAIN_ROWS = 10_000
FUTURE_ROWS, IN_FLIGHT_ROWS = 500_000, 20_000
HOLD_BATCH = 1000

Rows = Callable[[int], int]  # scales a number of rows


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`rows` due, `future` ones of the top priority, `leased` ones at the head; `cached`: plans made while empty."""

    name: str
    rows: int = PLAIN_ROWS
    future: int = 0
    leased: int = 0
    cached: bool = False


PLAIN = State(name="10k due")
STATES = (
    PLAIN,
    State(name="1M due", rows=1_000_000),
    State(name="1M due, plans cached on an empty queue", rows=1_000_000, cached=True),
    State(name="500k future rows of the top priority", future=FUTURE_ROWS),
    State(name="20k in flight at the head", leased=IN_FLIGHT_ROWS),
)
DEEP = State(name="5M due", rows=5_000_000)


def fill(connection: psycopg.Connection, state: State, scaled: Rows) -> None:
    """Everything but what is leased."""
    add(connection, scaled(state.rows), "due-")
    if state.future:
        add(connection, scaled(state.future), "future-", priority=0, ahead="1 hour")
    connection.execute("vacuum analyze")


def add(
    connection: psycopg.Connection,
    rows: int,
    keys: str,
    *,
    priority: int | None = None,
    ahead: str = "0",
) -> None:
    said = {"rows": rows, "keys": keys, "priority": priority, "ahead": ahead}
    connection.execute(statement("backlog"), said)


def lease_the_head(runner: asyncio.Runner, url: str, rows: int) -> None:
    """By another run, which says nothing more."""

    async def held() -> None:
        other = Probe(url, HOLD_BATCH)
        await other.begin()
        await other.hold(rows)
        await other.store.close()

    runner.run(held())
