"""What an event of AWS End User Messaging tells of the text message it is about. Pure.

Each message carries a context, which its events repeat. Sources: End User Messaging SMS guide, *Event types for SMS,
MMS and voice*, *Example event data*; of the events' order nothing is promised.
"""

from collections.abc import Mapping
from typing import Any

from fencepost.core.outcome import Delivered, Failed, Outcome, Rejected, Unregistered
from fencepost.senders.aws.tags import Told, told

PREFIX = "TEXT_"
TAKEN = {"SENT", "PENDING", "QUEUED", "SUCCESSFUL", "DELIVERED"}
# Taken, and then it did not get through: sent again it would be a second message, and cost again.
LOST = {
    "UNREACHABLE",
    "CARRIER_UNREACHABLE",
    "BLOCKED",
    "CARRIER_BLOCKED",
    "SPAM",
    "TTL_EXPIRED",
    "UNKNOWN",
}
REFUSED = {"INVALID_MESSAGE", "PROTECT_BLOCKED"}  # by AWS: nothing left it


def is_one(event: Mapping[str, Any]) -> bool:
    return str(event.get("eventType")).startswith(PREFIX) and "messageId" in event


def told_by(event: Mapping[str, Any]) -> Told | None:
    """None: it is about no message of ours, or says nothing of what became of it."""
    context = event.get("context")
    if not isinstance(context, Mapping):
        return None
    tags = {name: value for name, value in context.items() if isinstance(value, str)}
    return told(tags, _meaning(event))


def _meaning(event: Mapping[str, Any]) -> Outcome | None:
    """`Delivered` as everywhere: AWS has taken it."""
    kind = str(event["eventType"]).removeprefix(PREFIX)
    if kind in TAKEN:
        id = event["messageId"]
        return Delivered(id if isinstance(id, str) else None)
    if kind in LOST:
        return Failed(f"event {PREFIX}{kind}")
    if kind in REFUSED:
        return Rejected(f"event {PREFIX}{kind}")
    if kind == "INVALID":
        return Unregistered(f"event {PREFIX}{kind}", _instant(event.get("eventTimestamp")))
    return None


def _instant(milliseconds: object) -> float | None:
    """Unix time in milliseconds; what is no year of ours is left out."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / 1000.0 if 0 < milliseconds < 4e12 else None
