"""The database as an operator knows it: synchronous, one statement a call, no session state (poolers welcome)."""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from fencepost.core.inspection import Inspection
from fencepost.core.notification import Kind
from fencepost.core.operation import (
    ChannelChange,
    ChannelResumed,
    ChannelRow,
    ChannelStatus,
    DatabaseAway,
    Selector,
)
from fencepost.store.operator_error import BUSY, translated
from fencepost.store.query import query

CONNECT_TIMEOUT_SECONDS = 10
TRIES_MAX = 4  # 40P01 and 40001 wrote nothing: the same words again
PAGE = 1000  # notifications in one transaction of a bulk command
COUNT_AT_MOST = 50_000  # rows a group that `status` counts before it says "or more"

Answer = TypeVar("Answer")
Params = Mapping[str, Any]


class Operator:
    """Everything raises `OperatorError` and nothing else of the database's. Saying anything twice is harmless."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: psycopg.Connection[dict[str, Any]] | None = None

    def __enter__(self) -> Self:
        self._connection = connected(self._conninfo)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def connection(self) -> psycopg.Connection[dict[str, Any]]:
        if self._connection is None:
            raise DatabaseAway("the operator has no connection: it is used outside its `with`")
        return self._connection

    def bound_to(self) -> str | None:
        """The installation this database is bound to; None: nobody's yet."""
        name: str | None = self.value("operator_bound_to", {})
        return name

    def bind(self, name: str, *, force: bool = False) -> str:
        """`bound`, `already` or `rebound`. Another name without force is refused."""
        answer: str = self.value("operator_bind", {"name": name, "force": force})
        return answer

    def apply_channels(
        self, channels: Sequence[Mapping[str, Any]], *, dry: bool = False
    ) -> list[ChannelChange]:
        """Create or change channels by name, all or none; a pause stays a pause."""
        params = {"channels": Jsonb(list(channels)), "dry": dry}
        return self.answers("operator_channel_apply", params, ChannelChange)

    def channels(self) -> list[ChannelRow]:
        return self.answers("operator_channel_list", {}, ChannelRow)

    def pause(self, name: str, *, reason: str, seconds: float | None = None) -> int:
        """The channel's new revision. No seconds: until it is resumed."""
        params = {"name": name, "reason": reason, "seconds": seconds}
        revision: int = self.value("operator_channel_pause", params)
        return revision

    def resume(self, name: str) -> ChannelResumed:
        return self.answers("operator_channel_resume", {"name": name}, ChannelResumed)[0]

    def status(self, *, at_most: int | None = COUNT_AT_MOST) -> list[ChannelStatus]:
        """One row a channel. Above `at_most` rows a group the figures are lower bounds; None: count everything."""
        return self.answers("operator_status", {"at_most": at_most}, ChannelStatus)

    def inspect(
        self, id: int, *, recipient: bool = False, payload: bool = False
    ) -> Inspection | None:
        """All that is known of one notification; None: there is none. Recipient and payload only when asked for."""
        params = {"id": id, "recipient": recipient, "payload": payload}
        found = self.value("operator_inspect", params)
        return None if found is None else msgspec.convert(found, Inspection)

    def pages(self, selector: Selector) -> Iterator[list[int]]:
        """Ids in pages of at most 1000; `limit` counts all of them. Nothing is locked between two pages, and
        what is parked or enqueued after the first page is not met."""
        ends = self.rows(
            "operator_time_range",
            {"since_seconds": selector.since_seconds, "until_seconds": selector.until_seconds},
        )[0]
        left = selector.limit
        for page in self._all_pages(selector, ends):
            ids = page if left is None else page[:left]
            if ids:
                yield ids
            left = None if left is None else left - len(ids)
            if left == 0:
                return

    def _all_pages(self, selector: Selector, ends: Params) -> Iterator[list[int]]:
        if not selector.kinds:
            yield from self._open_pages(selector, ends)
        for kind in selector.kinds:
            yield from self._parked_pages(selector, kind, ends)

    def _open_pages(self, selector: Selector, ends: Params) -> Iterator[list[int]]:
        words = {"channel": selector.channel, "in_doubt": selector.in_doubt, "limit": PAGE, **ends}
        after = 0
        while rows := self.rows("operator_open_page", {**words, "after_id": after}):
            yield [row["id"] for row in rows]
            after = rows[-1]["id"]

    def _parked_pages(self, selector: Selector, kind: Kind, ends: Params) -> Iterator[list[int]]:
        words = {"kind": kind, "channel": selector.channel, "reason": selector.reason, **ends}
        after: dict[str, Any] = {"after_at": None, "after_id": None}
        while rows := self.rows("operator_parked_page", {**words, **after, "limit": PAGE}):
            yield [row["id"] for row in rows]
            after = {"after_at": rows[-1]["closed_at"], "after_id": rows[-1]["id"]}

    def answers(self, name: str, params: Params, kind: type[Answer]) -> list[Answer]:
        return msgspec.convert(self.rows(name, params), list[kind])  # type: ignore[valid-type]

    def value(self, name: str, params: Params) -> Any:
        """The one value of the one row."""
        (row,) = self.rows(name, params)
        (value,) = row.values()
        return value

    def rows(self, name: str, params: Params) -> list[dict[str, Any]]:
        """One statement, one transaction; the same words again where the database chose it as a deadlock's victim."""
        for left in reversed(range(TRIES_MAX)):
            try:
                return self.connection.execute(query(name), params).fetchall()
            except BUSY as error:
                if not left:
                    raise translated(error) from None
            except psycopg.Error as error:
                raise translated(error) from None
        raise AssertionError("unreachable: the last try returns or raises")


def connected(conninfo: str) -> psycopg.Connection[dict[str, Any]]:
    """Autocommit, nothing prepared. A malformed connection string is never quoted: it holds the password."""
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
    except psycopg.Error:
        raise DatabaseAway(
            "the connection string cannot be read: postgresql://user@host/name"
        ) from None
