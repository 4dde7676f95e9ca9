"""What ties an event of SES to the attempt it is about, and what it says became of the mail. Pure.

Each mail carries tags, and the events that its configuration set publishes repeat them. Source: SES developer guide,
*Contents of event records* (one JSON object, however it travels: SNS, EventBridge, Firehose); *Bounce types*.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from fencepost.core.notification import Claimed, Fence, Held, NotificationId
from fencepost.core.outcome import Delivered, Failed, Outcome, Rejected, Unregistered

NOTIFICATION_TAG = "fencepost-notification"
FENCE_TAG = "fencepost-fence"
ATTEMPT_TAG = "fencepost-attempt"
KEY_TAG = "fencepost-key"  # ids of two installations in one account are alike, their keys are not

TAKEN = {"Send", "Delivery", "DeliveryDelay", "Open", "Click", "Subscription"}
REFUSED = {"Reject", "Rendering Failure", "RenderingFailure"}


@dataclass(frozen=True, slots=True)
class Told:
    """`key` is the notification's idempotency key: an event whose key is another's is another's event."""

    held: Held
    key: UUID
    outcome: Outcome


def tags_of(claimed: Claimed) -> dict[str, str]:
    """What tells an event's mail: which notification, under which fence, which attempt."""
    return {
        NOTIFICATION_TAG: str(claimed.id),
        FENCE_TAG: str(claimed.fence),
        ATTEMPT_TAG: str(claimed.attempts),
        KEY_TAG: str(claimed.idempotency_key),
    }


def told_by(event: Mapping[str, Any]) -> Told | None:
    """None: it is about no mail of ours, or says nothing of what became of it."""
    mail = event.get("mail")
    tags = mail.get("tags") if isinstance(mail, Mapping) else None
    if not isinstance(mail, Mapping) or not isinstance(tags, Mapping):
        return None
    id, fence = _number(tags, NOTIFICATION_TAG), _number(tags, FENCE_TAG)
    key, outcome = _key(tags), _meaning(event, mail)
    if id is None or fence is None or key is None or outcome is None:
        return None
    return Told(Held(NotificationId(id), Fence(fence)), key, outcome)


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


def _tag(tags: Mapping[str, Any], name: str) -> str:
    """An event has each tag's values as a list."""
    match tags.get(name):
        case [str(value)]:
            return value
    return ""


def _number(tags: Mapping[str, Any], name: str) -> int | None:
    text = _tag(tags, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _key(tags: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(_tag(tags, KEY_TAG))
    except ValueError:
        return None
