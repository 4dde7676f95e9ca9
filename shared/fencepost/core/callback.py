"""Callbacks: what a provider tells by itself, some time later, of what became of one attempt. Pure.

It is evidence of that attempt, and where it says that the recipient is gone, an event for producers.
"""

from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """`outcome` None: nobody knows, or it is no news. `key`: the notification's idempotency key. Ids of two
    installations are alike, keys are not."""

    held: Held
    key: UUID
    outcome: AttemptOutcome | None
    reference: str | None = None
    detail: str | None = None
    gone: Unregistered | None = None


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
