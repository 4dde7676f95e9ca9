"""Bring the schema up to date: numbered SQL files, one transaction each."""

from pathlib import Path

import psycopg

SCHEMA = Path(__file__).parent / "schema"


def migrate(connection: psycopg.Connection) -> list[str]:
    """Apply every file in order (first rough version)."""
    names = []
    with connection.transaction():
        connection.execute("create schema if not exists fencepost")
        for file in sorted(SCHEMA.glob("[0-9]*.sql")):
            connection.execute(file.read_bytes())
            names.append(file.stem)
    return names
