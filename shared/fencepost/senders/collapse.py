"""What copies of a push are merged by, where a provider merges."""

from fencepost.core.notification import Claimed


def collapse_of(claimed: Claimed) -> str:
    """The payload's `collapse`, else the notification's own key: a repeat always replaces what it repeats."""
    return str(claimed.payload.get("collapse") or claimed.idempotency_key)
