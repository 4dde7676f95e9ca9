"""Rows to work on, put there the way producers do: some hundred a call."""

import psycopg

from bench.statement import statement

ROWS_A_CALL = 500


def load_fencepost(
    connection: psycopg.Connection, rows: int, *, port: int = 1, path: str = "/", first: int = 1
) -> None:
    for start in range(first, first + rows, ROWS_A_CALL):
        last = min(start + ROWS_A_CALL, first + rows) - 1
        connection.execute(
            statement("fencepost_enqueue"),
            {"first": start, "last": last, "port": port, "path": path},
        )


def load_plain(connection: psycopg.Connection, rows: int) -> None:
    for start in range(1, rows + 1, ROWS_A_CALL):
        last = min(start + ROWS_A_CALL, rows + 1) - 1
        connection.execute(statement("plain_enqueue"), {"first": start, "last": last})
