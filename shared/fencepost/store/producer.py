"""Enqueue from Python, in the transaction of the caller's own data, through the caller's own connection.

Takes a connection or cursor of psycopg or psycopg2, a SQLAlchemy Connection or Session, a Django connection. Never
commits, rolls back, or sets anything. What it can see to be wrong is refused before the database hears of it; what
only the database knows (channel, size, expiry) is the driver's error, SQLSTATE 22X01, and costs the transaction.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

import psycopg
from psycopg.rows import tuple_row

from fencepost.core.notification import NotificationId, OnUncertain
from fencepost.store.new_notification import Enqueued, EnqueueRefused, NewNotification, Refused

STATEMENT = Path(__file__).parent / "queries" / "enqueue.sql"


def enqueue(
    connection: Any,
    channel: str,
    recipient: str,
    payload: Mapping[str, Any],
    *,
    due_at: datetime | None = None,
    delay: timedelta | None = None,
    expires_at: datetime | None = None,
    ttl: timedelta | None = None,
    priority: int | None = None,
    dedupe_key: str | None = None,
    on_uncertain: OnUncertain | str | None = None,
    replay_of: int | None = None,
) -> Enqueued:
    """Enqueue one, if and only if the caller's transaction commits. Raises `EnqueueRefused`, or the driver's error."""
    new = NewNotification(
        channel=channel,
        recipient=recipient,
        payload=payload,
        due_at=due_at,
        delay=delay,
        expires_at=expires_at,
        ttl=ttl,
        priority=priority,
        dedupe_key=dedupe_key,
        on_uncertain=on_uncertain,
        replay_of=replay_of,
    )
    return enqueue_many(connection, [new])[0]


@overload
def enqueue_many(
    connection: Any, rows: Iterable[NewNotification], *, atomic: Literal[True] = True
) -> list[Enqueued]: ...
@overload
def enqueue_many(
    connection: Any, rows: Iterable[NewNotification], *, atomic: Literal[False]
) -> list[Enqueued | Refused]: ...
def enqueue_many(
    connection: Any, rows: Iterable[NewNotification], *, atomic: bool = True
) -> list[Enqueued] | list[Enqueued | Refused]:
    """Enqueue all in one statement; answers in the order given. Up to some ten thousand a call.

    `atomic`: one bad row refuses the call. Else good rows are enqueued and a bad one is answered as `Refused`.
    Submit keys that others may submit at the same time in one call: calls wait for each other in the order of the keys.
    """
    given = list(rows)
    faults = {number: fault for number, row in enumerate(given, 1) if (fault := row.fault())}
    if faults and atomic:
        number = min(faults)
        raise EnqueueRefused(number, faults[number])
    good = [row for number, row in enumerate(given, 1) if number not in faults]
    answers = iter(_enqueue(connection, good, atomic=atomic))
    return [
        Refused(faults[number]) if number in faults else next(answers)
        for number in range(1, len(given) + 1)
    ]


def _enqueue(
    connection: Any, rows: Sequence[NewNotification], *, atomic: bool
) -> list[Enqueued | Refused]:
    if not rows:
        return []
    columns = [list(column) for column in zip(*(row.columns() for row in rows), strict=True)]
    answers = _ask(connection, _statement(), (*columns, atomic))
    return [
        Enqueued(id=NotificationId(id_), created=created, differs=differs)
        if error is None
        else Refused(error)
        for _, id_, created, differs, error in answers
    ]


@cache
def _statement() -> str:
    """Without its comment: it travels with every call."""
    lines = STATEMENT.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


def _ask(connection: Any, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Through whatever the caller has, without a transaction of our own."""
    if inspect.iscoroutinefunction(getattr(connection, "execute", None)):
        raise TypeError(
            "fencepost.enqueue needs a synchronous connection: call it in `run_sync`, or call "
            "fencepost.enqueue in SQL (docs/producers.md)"
        )
    if hasattr(connection, "get_bind") and callable(getattr(connection, "connection", None)):
        connection = (
            connection.connection()
        )  # a SQLAlchemy Session: its connection, in its transaction
    if hasattr(connection, "exec_driver_sql"):
        return [tuple(row) for row in connection.exec_driver_sql(statement, values)]
    if isinstance(connection, psycopg.Cursor):
        connection = connection.connection
    if isinstance(connection, psycopg.Connection):  # past its own row and cursor factories
        with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            return cursor.execute(statement.encode(), values).fetchall()
    return _ask_dbapi(connection, statement, values)


def _ask_dbapi(connection: Any, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    own = not hasattr(connection, "fetchall")  # a cursor is the caller's, and stays open
    cursor = connection.cursor() if own else connection
    try:
        cursor.execute(statement, values)
        rows = cursor.fetchall()
    finally:
        if own:
            cursor.close()
    return [tuple(row.values()) if isinstance(row, Mapping) else tuple(row) for row in rows]
