"""VAPID (RFC 8292): one token for each push service, true of that service, and no longer than a day."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fencepost.senders import vapid
from fencepost.senders.jwt import BadKey
from fencepost.senders.request import Origin
from fencepost.senders.vapid import Vapid, read_key
from tests.senders.push_receiver import Vapid as Read
from tests.senders.push_receiver import b64url, public_point, read_vapid

KEY = ec.generate_private_key(ec.SECP256R1())
NUMBER = b64url(KEY.private_numbers().private_value.to_bytes(32, "big"))
SUBJECT = "mailto:push@sender.test"
MOZILLA = Origin(scheme="https", host="mozilla.test", port=443)
APPLE = Origin(scheme="https", host="apple.test", port=8443)


class Now:
    seconds = 1_700_000_000.5

    def __call__(self) -> float:
        return self.seconds


def told(by: Vapid, service: Origin) -> Read:
    return read_vapid(by.authorization(service))


def test_a_push_service_learns_who_we_are() -> None:
    now = Now()
    read = told(Vapid(KEY, SUBJECT, now=now), APPLE)
    assert read.key == b64url(public_point(KEY.public_key()))
    assert read.header == {"alg": "ES256", "typ": "JWT"}
    assert read.claims == {
        "aud": "https://apple.test:8443",
        "exp": 1_700_000_000 + 12 * 3600,
        "sub": SUBJECT,
    }


def test_claims_never_leak_from_one_service_to_the_next() -> None:
    """D40: a claims dict that is shared keeps the first service's `aud`."""
    by = Vapid(KEY, SUBJECT, now=Now())
    audiences = [told(by, each).claims["aud"] for each in (MOZILLA, APPLE, MOZILLA)]
    assert audiences == ["https://mozilla.test", "https://apple.test:8443", "https://mozilla.test"]


def test_a_token_is_used_while_it_is_fresh_and_no_longer() -> None:
    now = Now()
    by = Vapid(KEY, SUBJECT, now=now)
    first = by.authorization(MOZILLA)
    now.seconds += 11 * 3600 - 1
    assert by.authorization(MOZILLA) == first
    now.seconds += 1
    assert by.authorization(MOZILLA) != first
    ends = told(by, MOZILLA).claims["exp"]
    assert isinstance(ends, int)
    assert now.seconds < ends <= now.seconds + 86400


def test_tokens_are_bounded_whatever_hosts_recipients_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vapid, "SERVICES_MAX", 2)
    by = Vapid(KEY, SUBJECT, now=Now())
    for number in range(5):
        host = f"h{number}.test"
        by.authorization(Origin(scheme="https", host=host, port=443))
        assert len(by._tokens) <= 2


# --- secrets


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, form: PrivateFormat) -> str:
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


@pytest.mark.parametrize(
    "secret",
    [
        NUMBER,
        NUMBER + "=\n",
        pem(KEY, PrivateFormat.PKCS8),
        pem(KEY, PrivateFormat.TraditionalOpenSSL),
    ],
    ids=[
        "number",
        "padded",
        "pkcs8",
        "sec1",
    ],  # the key is new each time, and workers compare names
)
def test_a_key_is_read_however_it_was_made(secret: str) -> None:
    assert read_key(secret).private_numbers() == KEY.private_numbers()


@pytest.mark.parametrize(
    "secret",
    [
        "SECRET",
        b64url(bytes(32)),
        b64url(b"\xff" * 32),
        b64url(bytes(31)),
        "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----",
        pem(ec.generate_private_key(ec.SECP384R1()), PrivateFormat.PKCS8),
        pem(rsa.generate_private_key(65537, 2048), PrivateFormat.PKCS8),
        "é",
    ],
)
def test_a_bad_secret_is_refused_without_being_repeated(secret: str) -> None:
    with pytest.raises(BadKey) as refused:
        read_key(secret)
    assert str(refused.value) == "the secret is no private key on P-256, in PEM or base64url"
    assert refused.value.__suppress_context__


def test_no_secret_at_all() -> None:
    with pytest.raises(BadKey, match="no VAPID private key"):
        read_key(" ")


def test_the_key_is_never_shown() -> None:
    assert NUMBER not in repr(Vapid(KEY, SUBJECT)) + repr(vars(Vapid(KEY, SUBJECT)))
