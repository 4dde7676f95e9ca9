"""Rows to work on, put there the way producers do: some hundred a call."""

from collections.abc import Callable

import psycopg

from bench.statement import statement

ROWS_A_CALL = 500


def anywhere(number: int) -> str:
    """A recipient of the usual length, for those who send nothing."""
    return f"https://hooks.example.com/customers/{number:08d}"


def load_fencepost(
    connection: psycopg.Connection,
    rows: int,
    recipient: Callable[[int], str] = anywhere,
    *,
    after: int = 0,
) -> None:
    """`after`: how many are there already; their keys are not used again."""
    for start in range(1, rows + 1, ROWS_A_CALL):
        numbers = range(start, min(start + ROWS_A_CALL, rows + 1))
        recipients = [recipient(number) for number in numbers]
        said = {"first": after + start, "recipients": recipients}
        connection.execute(statement("fencepost_enqueue"), said)


def load_plain(connection: psycopg.Connection, rows: int) -> None:
    for start in range(1, rows + 1, ROWS_A_CALL):
        last = min(start + ROWS_A_CALL, rows + 1) - 1
        connection.execute(statement("plain_enqueue"), {"first": start, "last": last})
