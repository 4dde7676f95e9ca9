"""RFC 8291's own example, byte for byte, and what a browser reads; subscriptions, good and bad."""

import json
import os
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.senders.webpush_encryption import PLAINTEXT_BYTES_MAX, encrypted
from fencepost.senders.webpush_subscription import BadSubscription, read_subscription
from tests.senders.push_receiver import Browser, b64url, private_key, public_point, unb64url

# RFC 8291, section 5 and appendix A.
PLAINTEXT = b"When I grow up, I want to be a watermelon"
AUTH = unb64url("BTBZMqHH6r4Tts7J_aSIgg")
RECEIVER = private_key("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
SENDER = private_key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
SALT = unb64url("DGv6ra1nlYgDCS1FRnbzlw")
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLoc"
    "InmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLV"
    "WGNWQexSgSxsj_Qulcy4a-fN"
)
BROWSER = Browser(RECEIVER, AUTH)
ENDPOINT = "https://push.test/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"


def test_the_published_example() -> None:
    made = encrypted(PLAINTEXT, RECEIVER.public_key(), AUTH, one_time_key=SENDER, salt=SALT)
    assert b64url(made) == BODY
    assert b64url(public_point(RECEIVER.public_key())) == P256DH
    assert BROWSER.read(unb64url(BODY)) == PLAINTEXT


@settings(deadline=None)  # a busy machine is no failure
@given(plaintext=st.binary(max_size=PLAINTEXT_BYTES_MAX))
def test_a_browser_reads_what_was_meant_for_it(plaintext: bytes) -> None:
    assert BROWSER.read(encrypted(plaintext, RECEIVER.public_key(), AUTH)) == plaintext


def test_the_largest_message_fills_what_every_service_takes() -> None:
    assert PLAINTEXT_BYTES_MAX == 3993
    largest = encrypted(bytes(PLAINTEXT_BYTES_MAX), RECEIVER.public_key(), AUTH)
    assert len(largest) == 4096


def test_no_two_messages_are_encrypted_alike() -> None:
    one, two = (encrypted(PLAINTEXT, RECEIVER.public_key(), AUTH) for _ in range(2))
    assert one[:16] != two[:16]
    assert one[21:86] != two[21:86]


# --- subscriptions ---

GOOD = json.loads(BROWSER.subscription(ENDPOINT))


def test_a_browsers_own_words_are_read() -> None:
    read = read_subscription(BROWSER.subscription(ENDPOINT))
    assert (read.origin.host, read.origin.port) == ("push.test", 443)
    assert read.target == "/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"
    assert public_point(read.p256dh) == public_point(RECEIVER.public_key())
    assert read.auth == AUTH


def test_padded_base64_in_either_alphabet_is_read_too() -> None:
    for _ in range(20):  # until a key has had the characters in which the alphabets differ
        key, auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        written = json.loads(Browser(key, auth).subscription(ENDPOINT))
        for name, text in written["keys"].items():
            written["keys"][name] = text.replace("-", "+").replace("_", "/") + "=="
        assert read_subscription(json.dumps(written)).auth == auth


def changed(**changes: Any) -> str:
    keys = {**GOOD["keys"], **changes.pop("keys", {})}
    return json.dumps({**GOOD, "keys": keys, **changes})


OFF_THE_CURVE = b64url(b"\x04" + bytes(63) + b"\x01")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not {endpoint, keys: {p256dh, auth}} in JSON"),
        (ENDPOINT, "it is not {endpoint, keys: {p256dh, auth}} in JSON"),
        ("[]", "it is not {endpoint, keys: {p256dh, auth}} in JSON"),
        (json.dumps({"endpoint": ENDPOINT}), "it is not {endpoint, keys: {p256dh, auth}} in JSON"),
        (changed(endpoint=7), "it is not {endpoint, keys: {p256dh, auth}} in JSON"),
        (changed(endpoint="http://push.test/"), "its endpoint is not https"),
        (
            changed(endpoint="https://a:b@push.test/"),
            "its endpoint is no URL: it holds a user name",
        ),
        (changed(endpoint="push.test"), "its endpoint is no URL: it is not https://host/…"),
        (changed(keys={"p256dh": ""}), "its p256dh is no key on P-256"),
        (changed(keys={"p256dh": "é"}), "its p256dh is no key on P-256"),
        (changed(keys={"p256dh": GOOD["keys"]["p256dh"][:-4]}), "its p256dh is no key on P-256"),
        (changed(keys={"p256dh": OFF_THE_CURVE}), "its p256dh is no key on P-256"),
        (changed(keys={"auth": ""}), "its auth is not 16 bytes in base64url"),
        (changed(keys={"auth": "é" * 22}), "its auth is not 16 bytes in base64url"),
        (changed(keys={"auth": b64url(bytes(15))}), "its auth is not 16 bytes in base64url"),
    ],
)
def test_what_is_no_subscription(text: str, why: str) -> None:
    with pytest.raises(BadSubscription) as refused:
        read_subscription(text)
    assert str(refused.value) == why


def test_nothing_of_a_subscription_is_shown() -> None:
    shown = repr(read_subscription(BROWSER.subscription(ENDPOINT)))
    for secret in (
        "JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
        GOOD["keys"]["auth"],
        str(AUTH),
        "push.test",
    ):
        assert secret not in shown
