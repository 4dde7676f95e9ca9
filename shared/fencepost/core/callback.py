"""Callbacks: what a provider tells by itself, some time later, of what became of one attempt. Pure.

It is evidence of that attempt, and where it says that the recipient is gone, an event for producers.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, assert_never
from uuid import UUID

from msgspec import Struct

from fencepost.core.notification import AttemptOutcome, Held
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)


class Callback(Struct, frozen=True, kw_only=True):
    """`outcome` None: nobody knows, or it is no news. `key`: the notification's idempotency key. Ids of two
    installations are alike, keys are not."""

    held: Held
    key: UUID
    outcome: AttemptOutcome | None
    reference: str | None = None
    detail: str | None = None
    gone: Unregistered | None = None


class CallbackChannel(Struct, frozen=True, kw_only=True):
    """What it takes to believe a call: whose secret signs it, and with which settings."""

    name: str
    settings: Mapping[str, Any]
    secret_reference: str | None


class CallMalformed(ValueError):
    """A call over HTTP that is none of a provider's: one line that repeats nothing of it. `status` is the answer."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class Unverifiable(ValueError):
    """The channel's secret cannot tell whose a call is: one line."""


class Heard(StrEnum):
    """What is counted of calls."""

    REFUSED = "callbacks_refused"  # not signed, or malformed
    UNKNOWN = "callbacks_unknown"  # signed, of a notification that is not here


def callback_of(held: Held, key: UUID, told: Outcome) -> Callback:
    """The one table: what a provider told → evidence."""
    match told:
        case Delivered(reference=reference):
            return Callback(
                held=held, outcome=AttemptOutcome.DELIVERED, key=key, reference=reference
            )
        case Unregistered(reason=why):
            rejected = AttemptOutcome.REJECTED
            return Callback(held=held, outcome=rejected, key=key, detail=why, gone=told)
        case Rejected(reason=why):
            return Callback(held=held, outcome=AttemptOutcome.REJECTED, key=key, detail=why)
        case Failed(reason=why) | Throttled(reason=why) | CredentialFailure(reason=why):
            return Callback(held=held, outcome=AttemptOutcome.FAILED, key=key, detail=why)
        case NotSent(reason=why):
            return Callback(held=held, outcome=AttemptOutcome.NOT_SENT, key=key, detail=why)
        case Uncertain(reason=why):
            return Callback(held=held, outcome=None, key=key, detail=why)
        case _:
            assert_never(told)
