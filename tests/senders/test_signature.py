"""Standard Webhooks 1.0.0: the published vector, others made with its own Python library (1.1.0), and secrets."""

import base64

import pytest

from fencepost.senders.signature import BadSecret, SigningKeys, read_secrets
from rig.provider.signature import signed_by

OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # the standard's example
NEW = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
CONTACT = (
    '{"type":"contact.created","timestamp":"2022-11-03T20:26:10.344522Z",'
    '"data":{"id":"1f81eb52-5198-4599-803e-771906343485"}}'
)
VECTORS = [
    (
        OLD,
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        '{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        OLD,
        "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
        1674087231,
        CONTACT,
        "v1,ARw42xaAApl/nxRo+iPGYwSaMQaOwMo2eyH5JBRA+bQ=",
    ),
    (
        NEW,
        "9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11",
        1700000000,
        '{"data":{"é":"😀"},"type":"a.b"}',
        "v1,pHrq9OUxZxVHF4fG0RInKOdtey7YAa+uunr6EOOv8CU=",
    ),
]


def headers(keys: SigningKeys, id: str, timestamp: int, body: str) -> dict[str, str]:
    return dict(keys.headers(id=id, timestamp=timestamp, body=body.encode()))


@pytest.mark.parametrize(("secret", "id", "timestamp", "body", "signature"), VECTORS)
def test_vectors(secret: str, id: str, timestamp: int, body: str, signature: str) -> None:
    assert headers(read_secrets(secret), id, timestamp, body) == {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }


@pytest.mark.parametrize("separator", [" ", ",", "\n", " , "])
def test_during_a_rotation_both_secrets_sign(separator: str) -> None:
    keys = read_secrets(f"{NEW}{separator}{OLD}")
    _, id, timestamp, body, signature = VECTORS[0]
    signed = headers(keys, id, timestamp, body)["webhook-signature"]
    assert signed == f"v1,78nXHjpFP0tVJQW5D0SBwmVyyW87BV/rL6MgfM/Bw44= {signature}"


@pytest.mark.parametrize("known", [(OLD,), (NEW,), (OLD, NEW)])
def test_a_receiver_with_either_secret_accepts(known: tuple[str, ...]) -> None:
    signed = headers(read_secrets(f"{NEW} {OLD}"), "id", 1_700_000_000, "{}")
    assert signed_by(known, signed, b"{}", now=1_700_000_001.0)
    assert not signed_by(known, signed, b"{ }", now=1_700_000_001.0)


def test_the_same_secret_twice_signs_once() -> None:
    assert len(read_secrets(f"{OLD} {OLD}").keys) == 1


@pytest.mark.parametrize("length", [24, 25, 64])
def test_a_secret_may_come_without_padding(length: int) -> None:
    encoded = base64.b64encode(bytes(range(length))).decode()
    assert read_secrets(f"whsec_{encoded.rstrip('=')}").keys == (bytes(range(length)),)
    assert read_secrets(f"whsec_{encoded}").keys == (bytes(range(length)),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "there is no signing secret"),
        (" , ", "there is no signing secret"),
        ("hunter2hunter2hunter2hunter2", "a signing secret starts with whsec_"),
        ("whsk_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "a signing secret starts with whsec_"),
        ("whsec_hunter2!hunter2", "a signing secret is base64 after whsec_"),
        ("whsec_aHVudGVyMg==", "a signing secret has 24 to 64 bytes"),
        ("whsec_" + "A" * 88, "a signing secret has 24 to 64 bytes"),
        ("whsec_häßlich", "a signing secret is base64 after whsec_"),
    ],
)
def test_a_bad_secret_is_refused_without_being_shown(text: str, sentence: str) -> None:
    with pytest.raises(BadSecret) as refused:
        read_secrets(text)
    assert str(refused.value) == sentence
    assert refused.value.__cause__ is None


def test_keys_are_never_shown() -> None:
    keys = read_secrets(OLD)
    assert repr(keys) == str(keys) == "SigningKeys()"
