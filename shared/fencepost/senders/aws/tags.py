"""What ties an event of AWS to the attempt it is about: SES's tags of a mail, the context of a text message. Pure."""

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from fencepost.core.notification import Claimed, Fence, Held, NotificationId
from fencepost.core.outcome import Outcome

NOTIFICATION_TAG = "fencepost-notification"
FENCE_TAG = "fencepost-fence"
ATTEMPT_TAG = "fencepost-attempt"
KEY_TAG = "fencepost-key"  # ids of two installations in one account are alike, their keys are not


class Told(Struct, frozen=True):
    """`key` is the notification's idempotency key: an event whose key is another's is another's event."""

    held: Held
    key: UUID
    outcome: Outcome


def tags_of(claimed: Claimed) -> dict[str, str]:
    """Which notification, under which fence, which attempt."""
    return {
        NOTIFICATION_TAG: str(claimed.id),
        FENCE_TAG: str(claimed.fence),
        ATTEMPT_TAG: str(claimed.attempts),
        KEY_TAG: str(claimed.idempotency_key),
    }


def told(tags: Mapping[str, str], outcome: Outcome | None) -> Told | None:
    """None: the tags are not ours, or there is nothing to tell."""
    id, fence = _number(tags.get(NOTIFICATION_TAG, "")), _number(tags.get(FENCE_TAG, ""))
    key = _key(tags.get(KEY_TAG, ""))
    if id is None or fence is None or key is None or outcome is None:
        return None
    return Told(Held(NotificationId(id), Fence(fence)), key, outcome)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _key(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
