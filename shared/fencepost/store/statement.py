"""The statements of an operator, said over one autocommit connection: nothing prepared, nothing left in the session."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads

from fencepost.core.access import ImpossibleAccess
from fencepost.core.operation import DatabaseAway, Refused
from fencepost.ports import Access, AccessUnavailable
from fencepost.store.access import Written, read_url
from fencepost.store.failures import asked_for_password
from fencepost.store.new_notification import Enqueued, NewNotification
from fencepost.store.new_notification import Refused as RowRefused
from fencepost.store.operator_error import BUSY, translated
from fencepost.store.producer import enqueue_many
from fencepost.store.words import read_json

QUERIES = Path(__file__).parent / "queries"
CONNECT_TIMEOUT_SECONDS = 10
TRIES_MAX = 4  # 40P01 and 40001 wrote nothing: the same words again

IDLE = TransactionStatus.IDLE

Answer = TypeVar("Answer")
Connection = psycopg.Connection[dict[str, Any]]
Params = Mapping[str, Any]


class Statements:
    """One statement is one transaction. Raises `OperatorError` and nothing else of the database's."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def answers(self, name: str, params: Params, kind: type[Answer]) -> list[Answer]:
        """The rows as values of a type whose fields have the same names."""
        return [msgspec.convert(row, kind) for row in self.rows(name, params)]

    def value(self, name: str, params: Params) -> Any:
        """The one value of the one row."""
        (row,) = self.rows(name, params)
        (value,) = row.values()
        return value

    def rows(self, name: str, params: Params) -> list[dict[str, Any]]:
        """All rows of one statement of `queries/`."""
        return self.insist(lambda: self.connection.execute(_text(name), params).fetchall())

    def enqueue(self, rows: Sequence[NewNotification]) -> list[Enqueued | RowRefused]:
        """Good rows are enqueued, bad ones answered, in the order given."""
        return self.insist(lambda: enqueue_many(self.connection, rows, atomic=False))

    @contextmanager
    def all_or_none(self, keep: Callable[[], bool]) -> Iterator[None]:
        """One transaction around several statements; rolled back unless `keep()` at its end."""
        try:
            with self.connection.transaction() as transaction:
                yield
                if not keep():
                    raise psycopg.Rollback(transaction)
        except psycopg.Error as error:
            raise translated(error) from None

    def insist(self, say: Callable[[], Answer]) -> Answer:
        """The same words again where the database chose them as a deadlock's victim, but only if nothing else
        was said in the transaction that was lost with them."""
        tries = TRIES_MAX if self.connection.info.transaction_status is IDLE else 1
        for left in reversed(range(tries)):
            try:
                return say()
            except BUSY as error:
                if not left:
                    raise translated(error) from None
            except psycopg.Error as error:
                raise translated(error) from None
            except UnicodeEncodeError:
                raise Refused("a word holds bytes that are not UTF-8") from None
        raise AssertionError("unreachable: the last try returns or raises")


def connected(access: str | Access) -> Connection:
    """A refused login is tried once more with credentials read anew, where there are others."""
    way = Written(access) if isinstance(access, str) else access
    try:
        conninfo = way.conninfo()
        try:
            return _connected(conninfo)
        except psycopg.OperationalError as error:
            again = way.conninfo(anew=True) if asked_for_password(error) else conninfo
            if again == conninfo:
                raise translated(error) from None
        return _connected(again)
    except psycopg.OperationalError as error:
        raise translated(error) from None
    except AccessUnavailable as why:
        raise DatabaseAway(f"the database is away: {why}") from None


def _connected(conninfo: str) -> Connection:
    """A malformed connection string is never quoted: it holds the password."""
    try:
        read_url(conninfo)
        connection = psycopg.connect(
            conninfo,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            application_name="fencepost operator",
            row_factory=dict_row,
        )
        set_json_loads(read_json, connection)
        return connection
    except psycopg.OperationalError:
        raise
    except ImpossibleAccess as error:
        raise DatabaseAway(str(error)) from None
    except (psycopg.Error, UnicodeError, ValueError):
        raise DatabaseAway(
            "the connection string cannot be read: postgresql://user@host/name"
        ) from None


@cache
def _text(name: str) -> bytes:
    return (QUERIES / f"{name}.sql").read_bytes()
