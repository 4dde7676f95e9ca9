"""A claimed row as a sender gets it."""

import uuid
from typing import Any

from msgspec.structs import replace

from fencepost.core.notification import ChannelId, Claimed, Fence, NotificationId

KEY = uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
CLAIMED = Claimed(
    id=NotificationId(7),
    fence=Fence(3),
    channel=ChannelId(1),
    recipient="somebody",
    payload={"title": "Your order has left", "body": "It comes on Tuesday."},
    idempotency_key=KEY,
    attempts=1,
    interruptions=0,
    doubt=False,
    age_seconds=0.0,
    first_attempt_age_seconds=None,
    first_digest=None,
    evidence=None,
    expires_in_seconds=None,
    lease_left_seconds=20.0,
    on_uncertain=None,
)


def claimed(**changes: Any) -> Claimed:
    return replace(CLAIMED, **changes)


def in_doubt(*, since_seconds: float, **changes: Any) -> Claimed:
    """A row whose first attempt was so long ago, and nobody knows what became of it."""
    known = {"attempts": 2, "doubt": True, "first_attempt_age_seconds": since_seconds}
    return replace(CLAIMED, **{**known, **changes})
