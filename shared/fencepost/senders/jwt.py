"""JSON Web Tokens in their compact form (RFC 7515, RFC 7519): signed, never read. For those who let a provider know
who sends: ES256 for Apple and for Web Push, RS256 for Google.

The same claims under the same key are the same token, wherever it is signed: the JSON has one form, and the chance in
ECDSA is drawn from key and text (RFC 6979). Many sandboxes then speak with one token without sharing anything.
"""

import base64
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fencepost.senders.body import json_body

COORDINATE_BYTES = 32  # of P-256
# OpenSSL has it since 3.2; the pinned wheels of cryptography bring theirs.
DETERMINISTIC = ec.ECDSA(SHA256(), deterministic_signing=True)


class BadKey(ValueError):
    """The text is no private key of the wanted kind. The message does not repeat it."""


def ec_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """A private key on P-256 in PEM, as Apple hands out (`AuthKey_….p8`). Raises `BadKey`."""
    key = _private_key(pem)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadKey("it is no private key on the curve P-256")
    return key


def rsa_key(pem: str) -> rsa.RSAPrivateKey:
    """A private RSA key in PEM, as Google hands out. Raises `BadKey`."""
    key = _private_key(pem)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise BadKey("it is no private RSA key")
    return key


def signed_es256(claims: Mapping[str, Any], key: ec.EllipticCurvePrivateKey, **header: str) -> str:
    """ECDSA on P-256. JOSE writes the two numbers side by side, not in DER (RFC 7518, 3.4)."""
    content = _content("ES256", header, claims)
    r, s = decode_dss_signature(key.sign(content, DETERMINISTIC))
    numbers = (number.to_bytes(COORDINATE_BYTES, "big") for number in (r, s))
    return _token(content, b"".join(numbers))


def signed_rs256(claims: Mapping[str, Any], key: rsa.RSAPrivateKey, **header: str) -> str:
    """RSA with PKCS #1 v1.5 (RFC 7518, 3.3)."""
    content = _content("RS256", header, claims)
    return _token(content, key.sign(content, padding.PKCS1v15(), SHA256()))


def _content(algorithm: str, header: Mapping[str, str], claims: Mapping[str, Any]) -> bytes:
    """What is signed: header and claims, each in base64url."""
    first = json_body({"alg": algorithm, "typ": "JWT", **header})
    return b".".join((_base64url(first), _base64url(json_body(claims))))


def _token(content: bytes, signature: bytes) -> str:
    return b".".join((content, _base64url(signature))).decode("ascii")


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _private_key(pem: str) -> object:
    text = pem.strip().replace("\\n", "\n")  # a variable or a console may hold no line breaks
    try:
        return load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError) as wrong:  # TypeError: it is encrypted; ours are not
        raise BadKey("it is no private key in PEM") from wrong
