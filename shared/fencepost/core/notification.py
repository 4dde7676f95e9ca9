"""A notification as a run holds it, and the words that identify it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, NewType
from uuid import UUID

from msgspec import Struct

NotificationId = NewType("NotificationId", int)
Fence = NewType("Fence", int)
ChannelId = NewType("ChannelId", int)
RunId = NewType("RunId", UUID)


class Held(NamedTuple):
    """What a run holds, and the key of work in flight: a notification at one fence."""

    id: NotificationId
    fence: Fence


class OnUncertain(StrEnum):
    """The policy for doubt: what a run does with a row whose earlier attempt's outcome is unknown."""

    RESEND = "resend"  # again, same key and bytes, inside the provider's window
    HOLD = "hold"  # close as uncertain, for an operator or for evidence
    RECONCILE = "reconcile"  # ask the provider first


class AttemptOutcome(StrEnum):
    """What one attempt came to, as the ledger writes it. Best evidence first (the database sorts so)."""

    DELIVERED = "delivered"
    REJECTED = "rejected"  # refused for good
    FAILED = "failed"  # refused for now; costs an attempt
    NOT_SENT = (
        "not_sent"  # provably not accepted (never left, or refused unprocessed); attempt refunded
    )
    UNCERTAIN = "uncertain"  # may have been accepted; sets doubt
    HELD = "held"  # nothing was sent: a row in doubt was closed by the policy `hold`


class Kind(StrEnum):
    """How a notification is closed."""

    DELIVERED = "delivered"
    DEAD = "dead"
    UNCERTAIN = "uncertain"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Claimed(Struct, frozen=True):
    """One claimed row: the body, and what is known about it. Durations are seconds at the claim."""

    id: NotificationId
    fence: Fence
    channel: ChannelId
    recipient: str
    payload: Mapping[str, Any]
    idempotency_key: UUID  # the same for every attempt (G7)
    attempts: int  # this one included
    interruptions: int  # how often a run died holding it
    doubt: bool  # an earlier attempt's outcome is unknown
    age_seconds: float  # since it was due first
    first_attempt_age_seconds: (
        float | None
    )  # since the earliest claim of an attempt that may have been sent
    first_digest: bytes | None  # of the bytes first sent
    evidence: AttemptOutcome | None  # the best fact learnt outside a lease
    expires_in_seconds: float | None  # <= 0: expired; None: never
    lease_left_seconds: float  # by the database's clock, when it answered
    on_uncertain: OnUncertain | None  # the notification's own word over its channel's
    doubt_age_seconds: float | None = None  # since the latest claim whose attempt is in doubt
    resend_ordered: bool = False  # an operator's word over every policy and window, until it closes

    @property
    def held(self) -> Held:
        return Held(self.id, self.fence)
