"""Bodies: the same bytes for the same content, on every attempt and every machine."""

import hashlib
import json
from typing import Any

from fencepost.core.outcome import Rejected

DIGEST_BYTES = 16
JSON = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)  # made once: json.dumps makes one a call


def json_body(content: Any) -> bytes:
    """JSON with sorted keys, unescaped UTF-8. Raises ValueError where `content` has no JSON form."""
    return JSON.encode(content).encode()


def digest_of(*parts: bytes) -> bytes:
    """Over what the recipient would receive. What changes with each attempt (timestamps, signatures) stays out."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        if len(parts) > 1:  # so that no two lists of parts read the same
            digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def too_large(size: int, limit: int, what: str = "body") -> Rejected | None:
    """The refusal of what the provider would not take, before anything is sent. Bytes, encoded."""
    if size <= limit:
        return None
    return Rejected(f"{what} has {size} bytes, the provider takes {limit}")
