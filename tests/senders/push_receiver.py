"""The other end of Web Push: a browser that decrypts (RFC 8291, 3) and a push service that checks VAPID (RFC 8292).

Written from the RFCs, apart from the sender's own code, so that both must read them alike.
"""

import base64
import json
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def public_point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@dataclass(frozen=True)
class Browser:
    """One subscription and its private half."""

    key: ec.EllipticCurvePrivateKey
    auth: bytes

    def subscription(self, endpoint: str) -> str:
        """What the page hands to its server."""
        keys = {"p256dh": b64url(public_point(self.key.public_key())), "auth": b64url(self.auth)}
        return json.dumps({"endpoint": endpoint, "expirationTime": None, "keys": keys})

    def read(self, body: bytes) -> bytes:
        """Decrypt one record."""
        salt, length = body[:16], body[20]
        assert int.from_bytes(body[16:20], "big") == 4096
        theirs, record = body[21 : 21 + length], body[21 + length :]
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        info = b"WebPush: info\x00" + public_point(self.key.public_key()) + theirs
        ikm = hkdf(self.auth, self.key.exchange(ec.ECDH(), public), info, 32)
        key = hkdf(salt, ikm, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = hkdf(salt, ikm, b"Content-Encoding: nonce\x00", 12)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
        assert padded[-1] == 2
        return padded[:-1]


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    """From its number in base64url, as the RFC's appendix writes keys."""
    return ec.derive_private_key(int.from_bytes(unb64url(text), "big"), ec.SECP256R1())


@dataclass(frozen=True)
class Vapid:
    """What a push service reads in an `Authorization: vapid` header whose signature holds."""

    key: str
    header: dict[str, object]
    claims: dict[str, object]


def read_vapid(authorization: str) -> Vapid:
    """Raises where the signature does not hold."""
    scheme, _, rest = authorization.partition(" ")
    assert scheme.lower() == "vapid"
    named = dict(part.strip().split("=", 1) for part in rest.split(","))
    signed, _, signature = named["t"].rpartition(".")
    raw = unb64url(signature)
    assert len(raw) == 64
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64url(named["k"]))
    public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    header, claims = (json.loads(unb64url(part)) for part in signed.split("."))
    return Vapid(named["k"], header, claims)
