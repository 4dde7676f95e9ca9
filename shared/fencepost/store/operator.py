"""The database as an operator knows it: synchronous, one statement a call, no session state (poolers welcome)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import msgspec
from psycopg.types.json import Jsonb

from fencepost.core.inspection import Inspection
from fencepost.core.operation import (
    ChannelChange,
    ChannelResumed,
    ChannelRow,
    ChannelStatus,
    DatabaseAway,
    Moved,
    Resolution,
    Selector,
)
from fencepost.ports import Access
from fencepost.store import selection
from fencepost.store.new_notification import Enqueued, NewNotification, Refused
from fencepost.store.operator_doubt import Doubts
from fencepost.store.operator_migrate import Migrations
from fencepost.store.operator_retention import Retention
from fencepost.store.statement import Statements, connected

COUNT_AT_MOST = 50_000  # rows a group that `status` counts before it says "or more"


class Operator:
    """Everything raises `OperatorError` and nothing else of the database's. Saying anything twice is harmless.

    `who` is written beside everything this operator does to a notification.
    """

    def __init__(self, access: str | Access, *, who: str | None = None) -> None:
        self._access = access
        self._who = who
        self._statements: Statements | None = None

    def __enter__(self) -> Self:
        self._statements = Statements(connected(self._access))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._statements is not None:
            self._statements.connection.close()
            self._statements = None

    @property
    def say(self) -> Statements:
        if self._statements is None:
            raise DatabaseAway("the operator has no connection: it is used outside its `with`")
        return self._statements

    @property
    def migrations(self) -> Migrations:
        return Migrations(self.say.connection)

    @property
    def retention(self) -> Retention:
        return Retention(self.say)

    @property
    def doubts(self) -> Doubts:
        return Doubts(self.say, self._who)

    def bound_to(self) -> str | None:
        """The installation this database is bound to; None: nobody's yet."""
        name: str | None = self.say.value("operator_bound_to", {})
        return name

    def bind(self, name: str, *, force: bool = False) -> str:
        """`bound`, `already` or `rebound`. Another name without force is refused."""
        answer: str = self.say.value("operator_bind", {"name": name, "force": force})
        return answer

    def apply_channels(
        self, channels: Sequence[Mapping[str, Any]], *, dry: bool = False
    ) -> list[ChannelChange]:
        """Create or change channels by name, all or none; a pause stays a pause."""
        params = {"channels": Jsonb(list(channels)), "dry": dry}
        return self.say.answers("operator_channel_apply", params, ChannelChange)

    def channels(self) -> list[ChannelRow]:
        return self.say.answers("operator_channel_list", {}, ChannelRow)

    def pause(self, name: str, *, reason: str, seconds: float | None = None) -> int:
        """The channel's new revision. No seconds: until it is resumed."""
        params = {"name": name, "reason": reason, "seconds": seconds}
        revision: int = self.say.value("operator_channel_pause", params)
        return revision

    def resume(self, name: str) -> ChannelResumed:
        return self.say.answers("operator_channel_resume", {"name": name}, ChannelResumed)[0]

    def status(self, *, at_most: int | None = COUNT_AT_MOST) -> list[ChannelStatus]:
        """One row a channel. Above `at_most` rows a group the figures are lower bounds; None: count everything."""
        return self.say.answers("operator_status", {"at_most": at_most}, ChannelStatus)

    def inspect(
        self, id: int, *, recipient: bool = False, payload: bool = False
    ) -> Inspection | None:
        """All that is known of one notification; None: there is none. Recipient and payload only when asked for."""
        params = {"id": id, "recipient": recipient, "payload": payload}
        found = self.say.value("operator_inspect", params)
        return None if found is None else msgspec.convert(found, Inspection)

    def pages(self, selector: Selector) -> Iterator[list[int]]:
        """Ids in pages of at most 1000; `limit` counts all of them."""
        return selection.pages(self.say, selector)

    def standing(self, ids: Sequence[int]) -> list[Moved]:
        """How each stands: open, leased, or how it is closed; `unknown` where there is none."""
        return self.say.answers("operator_standing", {"ids": list(ids)}, Moved)

    def cancel(self, ids: Sequence[int], *, why: str | None = None) -> list[Moved]:
        """Close what is open. Cancelling what is leased is a takeover: its send may be under way."""
        return self._moved("operator_cancel", ids, why=why)

    def redrive(
        self, ids: Sequence[int], *, resend: bool = False, why: str | None = None
    ) -> list[Moved]:
        """Open parked ones again, attempts 0. An uncertain one only with `resend`: it may reach somebody twice."""
        return self._moved("operator_redrive", ids, resend=resend, why=why)

    def resolve(self, ids: Sequence[int], resolution: Resolution, *, why: str) -> list[Moved]:
        """An operator's word on what became of them: evidence like any other, except `resend`, which decides."""
        match resolution:
            case Resolution.RESEND:
                return self.redrive(ids, resend=True, why=why)
            case Resolution.DEAD:
                return self._give_up(ids, why)
            case Resolution.DELIVERED | Resolution.NOT_DELIVERED:
                return self._moved("operator_resolve", ids, outcome=resolution.value, why=why)

    def quarantine(self, *, why: str) -> int:
        """Put everything open in doubt (after a restore). How many."""
        count: int = self.say.value("operator_quarantine", {"who": self._who, "why": why})
        return count

    def enqueue(self, rows: Sequence[Mapping[str, Any]]) -> list[Enqueued | Refused]:
        """Words of `NewNotification`, some thousands a call; answers in order. A bad row is answered, not raised."""
        return self.say.enqueue([NewNotification(**row) for row in rows])

    def all_or_none(self, keep: Callable[[], bool]) -> AbstractContextManager[None]:
        """One transaction around several calls; rolled back unless `keep()` at the end."""
        return self.say.all_or_none(keep)

    def _give_up(self, ids: Sequence[int], why: str) -> list[Moved]:
        """Only held ones: of an open one the word would take the doubt away, and it would be sent again."""
        stands = self.standing(ids)
        held = [one.id for one in stands if one.became == "uncertain"]
        said = {
            one.id: one for one in self._moved("operator_resolve", held, outcome="dead", why=why)
        }
        return [said.get(one.id, one) for one in stands]

    def _moved(self, statement: str, ids: Sequence[int], **words: Any) -> list[Moved]:
        params = {"ids": list(ids), "who": self._who, **words}
        return self.say.answers(statement, params, Moved) if ids else []
