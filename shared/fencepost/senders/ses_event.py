"""What an event of SES tells of the attempt it is about. Pure.

Each mail carries tags, and the events that its configuration set publishes repeat them. Source: SES developer guide,
*Contents of event records* (one JSON object, however it travels: SNS, EventBridge, Firehose); *Bounce types*.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fencepost.core.outcome import Delivered, Failed, Outcome, Rejected, Unregistered
from fencepost.senders.aws.tags import Told, told

TAKEN = {"Send", "Delivery", "DeliveryDelay", "Open", "Click", "Subscription"}
REFUSED = {"Reject", "Rendering Failure", "RenderingFailure"}


def is_one(event: Mapping[str, Any]) -> bool:
    return isinstance(event.get("eventType"), str) and "mail" in event


def told_by(event: Mapping[str, Any]) -> Told | None:
    """None: it is about no mail of ours, or says nothing of what became of it."""
    mail = event.get("mail")
    tags = mail.get("tags") if isinstance(mail, Mapping) else None
    if not isinstance(mail, Mapping) or not isinstance(tags, Mapping):
        return None
    return told({name: _value(tags[name]) for name in tags}, _meaning(event, mail))


def _meaning(event: Mapping[str, Any], mail: Mapping[str, Any]) -> Outcome | None:
    """`Delivered` as everywhere: SES has taken it. Whoever complains has had it, and wants no more."""
    kind = str(event.get("eventType"))
    if kind in TAKEN:
        id = mail.get("messageId")
        return Delivered(id if isinstance(id, str) else None)
    if kind in REFUSED:
        return Rejected(f"event {kind}")
    if kind == "Complaint":
        return Unregistered("event Complaint", _instant(event.get("complaint")))
    if kind == "Bounce":
        return _bounce(event.get("bounce"))
    return None


def _bounce(bounce: object) -> Outcome:
    """Permanent: no such mailbox, or one on the account's suppression list. SES has given up on the others too."""
    said = bounce if isinstance(bounce, Mapping) else {}
    words = [str(said.get(name, "")) for name in ("bounceType", "bounceSubType")]
    why = " ".join(["event Bounce", *(word for word in words if word.isalpha() and word.isascii())])
    if said.get("bounceType") == "Permanent":
        return Unregistered(why, _instant(bounce))
    return Failed(why)


def _instant(part: object) -> float | None:
    written = part.get("timestamp") if isinstance(part, Mapping) else None
    try:
        instant = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _value(said: object) -> str:
    """An event has each tag's values as a list."""
    match said:
        case [str(value)]:
            return value
    return ""
