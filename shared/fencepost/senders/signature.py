"""Standard Webhooks 1.0.0, symmetric signatures (standardwebhooks.com): what is signed, and how secrets are written."""

import base64
import binascii
import hmac
import re
from dataclasses import dataclass, field

PREFIX = "whsec_"
KEY_BYTES_MIN = 24
KEY_BYTES_MAX = 64


class BadSecret(ValueError):
    """A signing secret is not written as the standard says. The message does not repeat it."""


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """One key, or the new and the old ones while a secret is being rotated. Never shown."""

    keys: tuple[bytes, ...] = field(repr=False)

    def headers(self, *, id: str, timestamp: int, body: bytes) -> tuple[tuple[str, str], ...]:
        """The three headers of one attempt. `timestamp` is its own, in unix seconds; `id` stays the same."""
        content = f"{id}.{timestamp}.".encode() + body
        signatures = " ".join(_signature(key, content) for key in self.keys)
        return (
            ("webhook-id", id),
            ("webhook-timestamp", str(timestamp)),
            ("webhook-signature", signatures),
        )


def read_secrets(text: str) -> SigningKeys:
    """`whsec_<base64>`, several separated by spaces or commas: each signs. Raises `BadSecret`."""
    written = [each for each in re.split(r"[\s,]+", text) if each]
    if not written:
        raise BadSecret("there is no signing secret")
    return SigningKeys(tuple(_key(each) for each in dict.fromkeys(written)))


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        raise BadSecret(f"a signing secret starts with {PREFIX}")
    encoded = secret.removeprefix(PREFIX)
    padded = encoded + "=" * (-len(encoded) % 4)  # unpadded base64 is common
    try:
        key = base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        # Its text could quote the secret.
        raise BadSecret(f"a signing secret is base64 after {PREFIX}") from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise BadSecret(f"a signing secret has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes")
    return key


def _signature(key: bytes, content: bytes) -> str:
    digest = hmac.digest(key, content, "sha256")
    return f"v1,{base64.b64encode(digest).decode('ascii')}"
