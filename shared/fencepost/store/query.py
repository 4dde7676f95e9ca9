"""The statements of `queries/`: one a file."""

from functools import cache
from pathlib import Path

QUERIES = Path(__file__).parent / "queries"


@cache
def query(name: str) -> bytes:
    return (QUERIES / f"{name}.sql").read_bytes()
