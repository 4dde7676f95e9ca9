"""Rows, channels and facts as tests of the core need them: named defaults, one word to change one thing."""

from typing import Any
from uuid import UUID

from fencepost.core.channel import AttemptPolicy, Channel, Facility
from fencepost.core.exchange import NO_FACTS, Facts
from fencepost.core.notification import ChannelId, Claimed, Fence, NotificationId, OnUncertain
from fencepost.core.transition import Sent

KEY = UUID(int=7)
KEYED = Facility(deduplicates_for_seconds=300.0)
NOTHING = Facility()
COLLAPSES = Facility(collapses=True)
TELLING = Facility(evidence_within_seconds=600.0)
ASKABLE = Facility(can_be_asked=True)


def a_claimed(id: int = 1, fence: int = 1, **changes: Any) -> Claimed:
    """A row claimed for the first time, well in time."""
    fields: dict[str, Any] = {
        "channel": ChannelId(1),
        "recipient": "r",
        "payload": {},
        "idempotency_key": KEY,
        "attempts": 1,
        "interruptions": 0,
        "doubt": False,
        "age_seconds": 1.0,
        "first_attempt_age_seconds": None,
        "first_digest": None,
        "evidence": None,
        "expires_in_seconds": None,
        "lease_left_seconds": 20.0,
        "on_uncertain": None,
    }
    return Claimed(id=NotificationId(id), fence=Fence(fence), **{**fields, **changes})


def a_channel(id: int = 1, **changes: Any) -> Channel:
    """An open channel without a rate."""
    fields: dict[str, Any] = {
        "name": f"channel-{id}",
        "sender": "webhook",
        "settings": {},
        "secret_reference": None,
        "slots": 10,
        "rate_per_second": None,
        "on_uncertain": OnUncertain.RESEND,
        "policy": AttemptPolicy(),
        "revision": 3,
        "paused_for_seconds": 0.0,
        "pause_reason": None,
    }
    return Channel(id=ChannelId(id), **{**fields, **changes})


def a_sent(
    claimed: Claimed | None = None,
    channel: Channel | None = None,
    facility: Facility = KEYED,
    *,
    facts: Facts = NO_FACTS,
    roll: float = 0.5,
    elapsed: float = 0.0,
) -> Sent:
    """An ended send half way through its chances."""
    return Sent(
        claimed=claimed or a_claimed(),
        channel=channel or a_channel(),
        facility=facility,
        facts=facts,
        roll=roll,
        elapsed_seconds=elapsed,
    )
