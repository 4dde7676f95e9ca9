"""Tokens: against the published vectors, against the other reader, and the same one wherever they are signed."""

import base64
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from fencepost.senders import jwt
from fencepost.senders.jwt import BadKey, ec_key, rsa_key, signed_es256, signed_rs256
from tests.senders.tokens import EC_KEY, EC_PEM, RSA_KEY, RSA_PEM, read_token, unb64url

# RFC 6979, A.2.5: P-256 and SHA-256 over "sample".
RFC_6979_KEY = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
RFC_6979_R = 0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
RFC_6979_S = 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
# RFC 7515, A.3: an ES256 token and its key.
RFC_7515_X = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
RFC_7515_Y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
RFC_7515_D = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
RFC_7515_TOKEN = (
    "eyJhbGciOiJFUzI1NiJ9"
    ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
)


def number(text: str) -> int:
    return int.from_bytes(unb64url(text), "big")


def test_the_chance_in_a_signature_is_drawn_from_key_and_text() -> None:
    key = ec.derive_private_key(RFC_6979_KEY, ec.SECP256R1())
    assert key.sign(b"sample", jwt.DETERMINISTIC) == encode_dss_signature(RFC_6979_R, RFC_6979_S)


def test_the_reader_of_these_tests_reads_the_published_token() -> None:
    key = ec.derive_private_key(number(RFC_7515_D), ec.SECP256R1())
    public = key.public_key().public_numbers()
    assert (public.x, public.y) == (number(RFC_7515_X), number(RFC_7515_Y))
    header, claims = read_token(RFC_7515_TOKEN, key.public_key())
    assert header == {"alg": "ES256"}
    assert claims == {"iss": "joe", "exp": 1300819380, "http://example.com/is_root": True}
    forged = RFC_7515_TOKEN.replace(".eyJpc3M", ".eyJpc3N")
    with pytest.raises(InvalidSignature):
        read_token(forged, key.public_key())


def test_a_token_of_ours_is_read_by_whoever_holds_the_public_key() -> None:
    token = signed_es256({"iss": "TEAM", "iat": 7}, EC_KEY, kid="KEY")
    assert read_token(token, EC_KEY.public_key()) == (
        {"alg": "ES256", "typ": "JWT", "kid": "KEY"},
        {"iss": "TEAM", "iat": 7},
    )
    assert "=" not in token
    token = signed_rs256({"scope": "a b"}, RSA_KEY, kid="k")
    assert read_token(token, RSA_KEY.public_key()) == (
        {"alg": "RS256", "typ": "JWT", "kid": "k"},
        {"scope": "a b"},
    )


def test_numbers_of_a_signature_keep_their_leading_zeros() -> None:
    """JOSE wants 64 bytes; one signature in 128 has a number that begins with a zero byte."""
    tokens = [signed_es256({"n": n}, EC_KEY) for n in range(600)]
    signatures = [unb64url(token.rpartition(".")[2]) for token in tokens]
    assert {len(each) for each in signatures} == {64}
    assert any(each[0] == 0 or each[32] == 0 for each in signatures)
    for token in tokens:
        read_token(token, EC_KEY.public_key())


def test_the_order_of_claims_changes_no_token() -> None:
    one = signed_es256({"a": 1, "b": 2}, EC_KEY, kid="k", x="y")
    assert one == signed_es256({"b": 2, "a": 1}, EC_KEY, x="y", kid="k")


def test_ten_at_once_sign_the_same_token() -> None:
    with ThreadPoolExecutor(10) as threads:
        tokens = list(threads.map(lambda _: signed_es256({"iat": 1800}, EC_KEY), range(10)))
    assert len(set(tokens)) == 1


def test_another_process_signs_the_same_token() -> None:
    program = (
        "import sys; from fencepost.senders.jwt import ec_key, signed_es256;"
        "print(signed_es256({'iat': 1800, 'iss': 'T'}, ec_key(sys.stdin.read()), kid='K'))"
    )
    theirs = subprocess.run(
        [sys.executable, "-c", program], input=EC_PEM, capture_output=True, text=True, check=True
    )
    assert theirs.stdout.strip() == signed_es256({"iss": "T", "iat": 1800}, EC_KEY, kid="K")


# --- keys ---


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, password: bytes | None = None) -> str:
    secrecy = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secrecy).decode()


def test_a_key_may_have_lost_its_line_breaks_to_a_variable() -> None:
    flat = EC_PEM.strip().replace("\n", "\\n")
    assert "\n" not in flat
    assert ec_key(flat).private_numbers() == EC_KEY.private_numbers()
    assert rsa_key(f"\n{RSA_PEM}\n").private_numbers() == RSA_KEY.private_numbers()


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (ec_key, "", "it is no private key in PEM"),
        (ec_key, "hunter2", "it is no private key in PEM"),
        (ec_key, RSA_PEM, "it is no private key on the curve P-256"),
        (
            ec_key,
            pem(ec.derive_private_key(77, ec.SECP384R1())),
            "it is no private key on the curve P-256",
        ),
        (ec_key, pem(EC_KEY, b"hunter2"), "it is no private key in PEM"),
        (rsa_key, EC_PEM, "it is no private RSA key"),
        (
            rsa_key,
            "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
            "it is no private key in PEM",
        ),
    ],
)
def test_a_key_of_another_kind_is_refused_without_being_quoted(
    read: object, text: str, sentence: str
) -> None:
    assert callable(read)
    with pytest.raises(BadKey) as refused:
        read(text)
    assert str(refused.value) == sentence


def test_base64url_and_json_are_as_the_standard_wants_them() -> None:
    """RFC 7515, A.2: PKCS #1 v1.5 over exactly `header.claims`."""
    token = signed_rs256({"iss": "joe"}, RSA_KEY)
    content, _, signature = token.rpartition(".")
    header, _, claims = content.partition(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "RS256", "typ": "JWT"}
    assert claims == base64.urlsafe_b64encode(b'{"iss":"joe"}').decode().rstrip("=")
    RSA_KEY.public_key().verify(unb64url(signature), content.encode(), padding.PKCS1v15(), SHA256())
