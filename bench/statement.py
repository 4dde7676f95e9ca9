"""The bench's own statements: one a file of `sql/`."""

from functools import cache
from pathlib import Path

SQL = Path(__file__).parent / "sql"


@cache
def statement(name: str) -> bytes:
    return (SQL / f"{name}.sql").read_bytes()
