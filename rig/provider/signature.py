"""Standard Webhooks 1.0.0, the receiver's side: `v1` signatures, a timestamp that is near, two secrets at rotation."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping

TOLERANCE_SECONDS = 300
PREFIX = "whsec_"


def signed_by(
    secrets: tuple[str, ...], headers: Mapping[str, str], body: bytes, now: float | None = None
) -> bool:
    """Whether one of the signatures was made with one of the secrets, and lately."""
    key, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not key or not stamp.isdigit():
        return False
    if abs((time.time() if now is None else now) - int(stamp)) > TOLERANCE_SECONDS:
        return False
    text = b".".join((key.encode(), stamp.encode(), body))
    right = [_sign(secret, text) for secret in secrets]
    found = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(one, other) for one in found for other in right)


def _sign(secret: str, text: bytes) -> str:
    raw = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(raw, text, hashlib.sha256)).decode()
