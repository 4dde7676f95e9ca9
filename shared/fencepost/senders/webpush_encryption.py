"""Encryption of a Web Push message: RFC 8291 over RFC 8188 (aes128gcm), one record.

Written on `cryptography`: the published package for this (http-ece 1.2.1) comes without a wheel, and the layer installs
nothing else. RFC 8291's own example is a test.
"""

import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
SALT_BYTES = 16
RECORD_BYTES = 4096  # what every push service takes (RFC 8291, 4)
HEADER_BYTES = SALT_BYTES + 4 + 1 + 65  # salt, record size, length of the key, the key
PLAINTEXT_BYTES_MAX = (
    RECORD_BYTES - HEADER_BYTES - 16 - 1
)  # less the tag and the mark of the last record: 3993
LAST_RECORD = b"\x02"


def encrypted(
    plaintext: bytes,
    p256dh: ec.EllipticCurvePublicKey,
    auth: bytes,
    *,
    one_time_key: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """The body for a subscription's key and secret. The one-time key and the salt are new for each message; a test
    gives the RFC's. Not for more than `PLAINTEXT_BYTES_MAX`."""
    own = one_time_key or ec.generate_private_key(CURVE)
    salt = salt or os.urandom(SALT_BYTES)
    ours, theirs = point_of(own.public_key()), point_of(p256dh)
    shared = own.exchange(ec.ECDH(), p256dh)
    input_key = _derived(shared, auth, b"WebPush: info\0" + theirs + ours, 32)
    key = _derived(input_key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(input_key, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(ours)]) + ours
    return header + AESGCM(key).encrypt(nonce, plaintext + LAST_RECORD, None)


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    """As the Push API writes keys: 65 bytes, uncompressed (X9.62)."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
