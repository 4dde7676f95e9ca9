"""Whether a repeat may leave: the same key must carry the same bytes while the provider remembers the key (G7)."""

from fencepost.core.channel import Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Rejected

OTHER_BYTES = "the message differs from the one first sent under its idempotency key"


def refused_repeat(claimed: Claimed, digest: bytes, facility: Facility) -> Rejected | None:
    """Why these bytes may not be sent now, or None.

    An earlier attempt that provably never left does not count, nor one whose key the provider has forgotten.
    """
    window = facility.deduplicates_for_seconds
    age = claimed.first_attempt_age_seconds
    if window is None or age is None or claimed.first_digest is None:
        return None
    same = claimed.first_digest == digest
    return None if same or age >= window else Rejected(OTHER_BYTES)
