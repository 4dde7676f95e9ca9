"""The statements of an operator, said over one autocommit connection: nothing prepared, nothing left in the session."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import dict_row

from fencepost.core.operation import DatabaseAway
from fencepost.store.operator_error import BUSY, translated

QUERIES = Path(__file__).parent / "queries"
CONNECT_TIMEOUT_SECONDS = 10
TRIES_MAX = 4  # 40P01 and 40001 wrote nothing: the same words again

Answer = TypeVar("Answer")
Connection = psycopg.Connection[dict[str, Any]]
Params = Mapping[str, Any]


class Statements:
    """One statement is one transaction. Raises `OperatorError` and nothing else of the database's."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def answers(self, name: str, params: Params, kind: type[Answer]) -> list[Answer]:
        """The rows as values of a dataclass with the same names."""
        return [msgspec.convert(row, kind) for row in self.rows(name, params)]

    def value(self, name: str, params: Params) -> Any:
        """The one value of the one row."""
        (row,) = self.rows(name, params)
        (value,) = row.values()
        return value

    def rows(self, name: str, params: Params) -> list[dict[str, Any]]:
        """All rows; the same words again where the database chose them as a deadlock's victim."""
        for left in reversed(range(TRIES_MAX)):
            try:
                return self.connection.execute(_text(name), params).fetchall()
            except BUSY as error:
                if not left:
                    raise translated(error) from None
            except psycopg.Error as error:
                raise translated(error) from None
        raise AssertionError("unreachable: the last try returns or raises")


def connected(conninfo: str) -> Connection:
    """A malformed connection string is never quoted: it holds the password."""
    try:
        return psycopg.connect(
            conninfo,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="fencepost operator",
            row_factory=dict_row,
        )
    except psycopg.OperationalError as error:
        raise translated(error) from None
    except (psycopg.Error, UnicodeError, ValueError):
        raise DatabaseAway(
            "the connection string cannot be read: postgresql://user@host/name"
        ) from None


@cache
def _text(name: str) -> bytes:
    return (QUERIES / f"{name}.sql").read_bytes()
