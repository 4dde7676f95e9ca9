"""The other end of a token: keys made for these tests, and a reader that trusts nothing."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

EC_KEY = ec.derive_private_key(0x5EED << 200, ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


EC_PEM = _pem(EC_KEY)
RSA_PEM = _pem(RSA_KEY)


def unb64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def read_token(
    token: str, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, if the signature holds. Raises `InvalidSignature`."""
    content, _, written = token.rpartition(".")
    signature = unb64url(written)
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, content.encode(), padding.PKCS1v15(), SHA256())
    else:
        r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        key.verify(encode_dss_signature(r, s), content.encode(), ec.ECDSA(SHA256()))
    header, claims = (json.loads(unb64url(part)) for part in content.split("."))
    return header, claims
