"""A subscription as a browser gives it (`PushSubscription.toJSON()`, W3C Push API): the recipient of a Web Push."""

import base64
import binascii
from dataclasses import dataclass, field

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from fencepost.senders.request import InvalidUrl, Origin, read_url
from fencepost.senders.webpush_encryption import CURVE

AUTH_BYTES = 16  # RFC 8291, 3.2


class BadSubscription(ValueError):
    """The recipient is no subscription. The message does not repeat it."""


class _Keys(msgspec.Struct):
    p256dh: str
    auth: str


class _Written(msgspec.Struct):
    """What is read of it; `expirationTime` and whatever else a browser adds is passed over."""

    endpoint: str
    keys: _Keys


@dataclass(frozen=True, slots=True)
class Subscription:
    """Where to send, and for whose eyes. The endpoint is a secret: whoever knows it may send there."""

    origin: Origin
    target: str = field(repr=False)
    p256dh: ec.EllipticCurvePublicKey = field(repr=False)
    auth: bytes = field(repr=False)


def read_subscription(text: str, *, private_allowed: bool = False) -> Subscription:
    """Raises `BadSubscription`."""
    written = _written(text)
    origin, target = _endpoint(written, private_allowed)
    return Subscription(origin, target, _key(written.keys.p256dh), _auth(written.keys.auth))


def read_endpoint(text: str, *, private_allowed: bool = False) -> tuple[Origin, str]:
    """Only where it leads: much cheaper than the keys. Raises `BadSubscription`."""
    return _endpoint(_written(text), private_allowed)


def _written(text: str) -> _Written:
    try:
        return msgspec.json.decode(text, type=_Written)
    except (msgspec.DecodeError, UnicodeError):  # its text could quote a key
        raise BadSubscription("it is not {endpoint, keys: {p256dh, auth}} in JSON") from None


def _endpoint(written: _Written, private_allowed: bool) -> tuple[Origin, str]:
    try:
        origin, target = read_url(written.endpoint, private_allowed=private_allowed)
    except InvalidUrl as wrong:
        raise BadSubscription(f"its endpoint is no URL: {wrong}") from None
    if not origin.secure:
        raise BadSubscription("its endpoint is not https")
    return origin, target


def _key(text: str) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, _decoded(text))
    except ValueError:
        raise BadSubscription("its p256dh is no key on P-256") from None


def _auth(text: str) -> bytes:
    try:
        secret = _decoded(text)
    except ValueError:
        secret = b""
    if len(secret) != AUTH_BYTES:
        raise BadSubscription(f"its auth is not {AUTH_BYTES} bytes in base64url")
    return secret


def _decoded(text: str) -> bytes:
    """base64url as browsers write it; padded or in the other alphabet as some libraries do. Raises ValueError."""
    plain = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except binascii.Error as wrong:
        raise ValueError("not base64url") from wrong
