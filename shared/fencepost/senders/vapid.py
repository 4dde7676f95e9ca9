"""VAPID (RFC 8292): who we are, told to each push service in a token of its own."""

import base64
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import ec

from fencepost.senders.jwt import BadKey, ec_key, signed_es256
from fencepost.senders.request import Origin
from fencepost.senders.webpush_encryption import CURVE, point_of

# 24 h at most, says RFC 8292, 2; a service whose clock is off needs some room.
LIFE_SECONDS = 12 * 3600
RENEWED_SECONDS = 3600  # before its end
SERVICES_MAX = 1000
KEY_BYTES = 32


class Vapid:
    """The tokens of one key. `now` is wall time in unix seconds."""

    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        subject: str,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._key = key
        self._public = _base64url(point_of(key.public_key()))
        self._subject = subject
        self._now = now
        self._tokens: dict[
            str, tuple[float, str]
        ] = {}  # by audience: until when it is used, and it

    def authorization(self, service: Origin) -> str:
        """The value of `Authorization` for this service; the same one until it ages."""
        return f"vapid t={self._token(audience(service))}, k={self._public}"

    def _token(self, audience: str) -> str:
        now = self._now()
        until, token = self._tokens.get(audience, (0.0, ""))
        if now < until:
            return token
        if len(self._tokens) >= SERVICES_MAX:  # as many as hosts in recipients: anybody's
            self._tokens.clear()
        ends = int(now) + LIFE_SECONDS
        # New claims for each: a shared dict would carry one service's `aud` to the next (pywebpush#79).
        token = signed_es256({"aud": audience, "exp": ends, "sub": self._subject}, self._key)
        self._tokens[audience] = (ends - RENEWED_SECONDS, token)
        return token


def audience(service: Origin) -> str:
    """Its origin in ASCII (RFC 6454): the port only where it is not the scheme's own."""
    return f"{service.scheme}://{service.authority}"


def read_key(text: str) -> ec.EllipticCurvePrivateKey:
    """A private key on P-256: PEM, or its number in base64url as `web-push generate-vapid-keys` prints it.
    Raises `BadKey`."""
    written = text.strip()
    if not written:
        raise BadKey("there is no VAPID private key")
    try:
        return ec_key(written) if written.startswith("-----") else _from_number(written)
    except ValueError:  # its text could quote the secret
        raise BadKey("the secret is no private key on P-256, in PEM or base64url") from None


def _from_number(text: str) -> ec.EllipticCurvePrivateKey:
    plain = text.rstrip("=")
    number = base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    if len(number) != KEY_BYTES:
        raise ValueError("another length")
    return ec.derive_private_key(int.from_bytes(number, "big"), CURVE)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
