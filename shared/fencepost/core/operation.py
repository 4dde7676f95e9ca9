"""What an operator is told by the database: answers, and the one tree of errors.

OperatorError            one line, safe to show: no recipient, payload, secret or connection string
├── Refused              the database says no to what was asked; nothing was written
├── DatabaseAway         no connection, or it broke: what was under way may have been done (saying it again is harmless)
└── SchemaMissing        the functions are not there, or not this code's: not migrated yet, older, or of edited files
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from fencepost.core.bound import OPEN_END, Bound
from fencepost.core.channel import AttemptPolicy
from fencepost.core.notification import Kind, OnUncertain


class OperatorError(Exception):
    """One line that tells an operator what is wrong."""


class Refused(OperatorError):
    """The database says no; nothing was written."""


class DatabaseAway(OperatorError):
    """There is no connection to be had, or it broke."""


NOT_MIGRATED = "this database is not migrated for this version: run fencepost migrate"


class SchemaMissing(OperatorError):
    """This database does not have the functions that this code calls."""


class ChannelChange(Struct, frozen=True, kw_only=True):
    """What `apply` did to one channel: created, changed or unchanged. A pause outlives it."""

    name: str
    change: str
    revision: int
    paused: bool
    pause_reason: str | None


class ChannelRow(Struct, frozen=True, kw_only=True):
    """A channel as an operator sees it. Paused without seconds: until somebody resumes it."""

    name: str
    sender: str
    settings: Mapping[str, Any]
    secret_reference: str | None
    slots: int
    rate: float | None
    burst: float | None
    on_uncertain: OnUncertain
    policy: AttemptPolicy
    payload_bytes_max: int
    revision: int
    paused: bool
    paused_for_seconds: float | None
    pause_reason: str | None


class ChannelResumed(Struct, frozen=True, kw_only=True):
    """`was_paused_for` is the reason; None: it was open."""

    revision: int
    was_paused_for: str | None


class ChannelStatus(Struct, frozen=True, kw_only=True):
    """One channel's figures. `open_more`, `parked_more`: counting was stopped, the figures are lower bounds."""

    channel: str
    sender: str
    due: int
    scheduled: int
    leased: int
    in_doubt: int
    open_more: bool
    oldest_due_seconds: float | None
    dead: int
    uncertain: int
    parked_more: bool
    paused: bool
    paused_for_seconds: float | None
    pause_reason: str | None
    skip_reason: str | None = None  # why the last run that looked cannot send on it
    skipped_at: str | None = None  # since when
    skipped_for_seconds: float | None = None
    withheld: int = (
        0  # recipients said to be gone of which nobody is told before an operator's word
    )


class Selector(Struct, frozen=True, kw_only=True):
    """Which notifications, where no ids are given."""

    channel: str | None = None
    kinds: tuple[Kind, ...] = field(default=())  # parked kinds; none: open ones
    reason: str | None = None
    since: Bound = OPEN_END
    until: Bound = OPEN_END
    in_doubt: bool | None = None
    limit: int | None = None


class Moved(Struct, frozen=True, kw_only=True):
    """What became of one notification an operator spoke of."""

    id: int
    became: str


class Doubtful(Struct, frozen=True, kw_only=True):
    """One notification in doubt, and the latest attempt that left it so.

    `state`: waits (for evidence, or its turn), leased, abandoned (its run is gone) or held (closed as uncertain)."""

    id: int
    channel: str
    state: str
    reason: str | None  # of a held one
    policy: OnUncertain
    since: str | None
    age_seconds: float | None
    attempts: int
    fence: int | None
    outcome: str | None
    phase: str | None
    status: int | None
    reference: str | None
    detail: str | None


class GoneRecipient(Struct, frozen=True, kw_only=True):
    """A recipient said to be gone. `state`: told, waiting, or withheld and why."""

    id: int
    channel: str
    at: str
    state: str
    gone_at: str | None
    guarded: bool
    why: str | None
    recipient: str | None  # only where it was asked for
    told_on_word_of: str | None


class Resolution(StrEnum):
    """What an operator says became of a notification in doubt."""

    DELIVERED = "delivered"  # it arrived
    NOT_DELIVERED = "not_delivered"  # it did not: nothing is in doubt any more, it is sent again
    DEAD = "dead"  # whatever became of it, nothing more is done
    RESEND = "resend"  # still in doubt, and sent again: it may arrive twice
