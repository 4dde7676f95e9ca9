"""What a producer hands over, checked as far as it can be before the database sees it: a slip costs no transaction."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from fencepost.core.notification import NotificationId, OnUncertain
from fencepost.core.payload import payload_fault, payload_text, text_fault

LONGEST = timedelta(days=3650)


class EnqueueRefused(ValueError):
    """Nothing was enqueued. One line naming row (from 1) and field; no recipient, key or payload in it."""

    def __init__(self, row: int, fault: str) -> None:
        super().__init__(f"row {row}, {fault}")
        self.row = row
        self.fault = fault


class NewNotification(Struct, frozen=True, kw_only=True):
    """One notification to be. Left out: due now, never expires, priority 1, the channel's own policy for doubt."""

    channel: str  # by name
    recipient: str  # what its sender takes: device token, URL, address, number
    payload: Mapping[str, Any]  # docs/payload.md
    due_at: datetime | None = None  # with a time zone; past: now
    delay: timedelta | None = None  # instead of due_at, by the database's clock
    expires_at: datetime | None = None  # with a time zone
    ttl: timedelta | None = None  # instead of expires_at, from when it is due
    priority: int | None = None  # 0 first, 1, 2
    dedupe_key: str | None = None  # at most one notification for each channel and key
    on_uncertain: OnUncertain | str | None = None  # over the channel's policy for doubt
    replay_of: int | None = None  # the notification it was made from

    def fault(self) -> str | None:
        """Why it cannot be enqueued, as "field: why"; None: nothing known against it here."""
        return next(self._faults(), None)

    def columns(self) -> tuple[str | None, ...]:
        """As text in the order of queries/enqueue.sql. Only without fault."""
        return (
            self.channel,
            self.recipient,
            payload_text(self.payload),
            _instant(self.due_at),
            _duration(self.delay),
            _instant(self.expires_at),
            _duration(self.ttl),
            None if self.priority is None else str(self.priority),
            self.dedupe_key,
            self.on_uncertain,
            None if self.replay_of is None else str(self.replay_of),
        )

    def _faults(self) -> Iterator[str]:
        for name, optional in TEXTS.items():
            value = getattr(self, name)
            if not (isinstance(value, str) or (optional and value is None)):
                yield f"{name}: must be a string"
            elif value is not None and (fault := text_fault(value)):
                yield f"{name}: {fault}"
        if fault := payload_fault(self.payload):
            yield fault
        for name in ("due_at", "expires_at"):
            yield from _instant_faults(name, getattr(self, name))
        for name in ("delay", "ttl"):
            yield from _duration_faults(name, getattr(self, name))
        for name, largest in (("priority", 2), ("replay_of", 2**63 - 1)):
            yield from _integer_faults(name, getattr(self, name), largest)


TEXTS = {"channel": False, "recipient": False, "dedupe_key": True, "on_uncertain": True}


class Enqueued(Struct, frozen=True, kw_only=True):
    """There is one notification with this id.

    Not `created`: it was there under this dedupe key; `differs`: with another recipient or payload, which stay.
    """

    id: NotificationId
    created: bool
    differs: bool


class Refused(Struct, frozen=True):
    """This row was not enqueued, others of the call were. `fault` as "field: why"."""

    fault: str


def _instant(value: datetime | None) -> str | None:
    """In UTC: PostgreSQL reads no displacement of 16 hours or more."""
    return None if value is None else value.astimezone(UTC).isoformat()


def _duration(value: timedelta | None) -> str | None:
    return None if value is None else f"{value // timedelta(microseconds=1)} microseconds"


def _instant_faults(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, datetime):
        yield f"{name}: must be a datetime"
    elif value.utcoffset() is None:
        yield f"{name}: has no time zone"
    elif not _in_utc(value):
        yield f"{name}: lies outside the years 1 to 9999"


def _in_utc(value: datetime) -> bool:
    try:
        value.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _duration_faults(name: str, value: object) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, timedelta):
        yield f"{name}: must be a timedelta"
    elif abs(value) > LONGEST:
        yield f"{name}: longer than {LONGEST.days} days"


def _integer_faults(name: str, value: object, largest: int) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        yield f"{name}: must be a whole number"
    elif not 0 <= value <= largest:
        yield f"{name}: must lie between 0 and {largest}"
