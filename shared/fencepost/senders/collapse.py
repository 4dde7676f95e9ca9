"""What copies of a push are merged by, where a provider merges."""

import base64
import hashlib
import re

from fencepost.core.notification import Claimed

PLAIN = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)


def collapse_of(claimed: Claimed) -> str:
    """The payload's `collapse`, else the notification's own key: a repeat always replaces what it repeats."""
    return str(claimed.payload.get("collapse") or claimed.idempotency_key)


def collapse_id(claimed: Claimed) -> str:
    """The same for Apple, who takes 64 bytes in a header: what no header can hold goes as its hash."""
    text = collapse_of(claimed)
    return text if PLAIN.fullmatch(text) else topic_of(text)


def topic_of(collapse: str) -> str:
    """The same for Web Push. RFC 8030, 5.4: at most 32 characters of base64url. Apple decodes them (BadWebPushTopic
    for an impossible length), so it is always 24 bytes of a hash."""
    hashed = hashlib.blake2b(collapse.encode(), digest_size=24).digest()
    return base64.urlsafe_b64encode(hashed).decode("ascii")
