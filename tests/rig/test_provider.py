"""The provider's word is the demo's second opinion: it must count what really happened, and misbehave as told."""

import http.client
from contextlib import closing
from pathlib import Path

import pytest

from rig.ground import wait_until
from rig.provider.behaviour import DRIP_SECONDS, Behaviour
from rig.provider.signature import TOLERANCE_SECONDS, signed_by
from rig.receiver import SECRET, LocalProvider, local_provider
from tests.rig.sender import BODY, Sender

# The worked example of the Standard Webhooks libraries' own test suite.
VECTOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_BODY = b'{"test": 2432232314}'
VECTOR_AT = 1614265330
VECTOR = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(VECTOR_AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_it_knows_the_specifications_own_signature() -> None:
    assert signed_by((VECTOR_SECRET,), VECTOR, VECTOR_BODY, now=VECTOR_AT)
    assert signed_by((SECRET, VECTOR_SECRET), VECTOR, VECTOR_BODY, now=VECTOR_AT)
    assert not signed_by((VECTOR_SECRET,), VECTOR, VECTOR_BODY + b" ", now=VECTOR_AT)
    assert not signed_by((SECRET,), VECTOR, VECTOR_BODY, now=VECTOR_AT)


def test_it_refuses_an_old_timestamp() -> None:
    late = VECTOR_AT + TOLERANCE_SECONDS + 1
    assert not signed_by((VECTOR_SECRET,), VECTOR, VECTOR_BODY, now=late)


def test_a_wrong_signature_has_no_effect_and_is_counted(
    provider: LocalProvider, sender: Sender
) -> None:
    assert sender.send("/dedupes/ok/0/a", "k", secret=VECTOR_SECRET)[0] == 401
    assert (provider.count().arrivals, provider.count().refused_signatures) == (0, 1)


ANSWERS = {
    "ok": (200, 1),
    "created": (201, 1),
    "slow": (200, 1),
    "throttle": (429, 0),
    "busy": (503, 0),
    "error": (500, 0),
    "gone": (410, 0),
    "refuse": (400, 0),
}
SILENCES = {"drop": (1, "cut"), "stall": (1, "left"), "hang": (0, "left"), "drip": (1, "left")}


@pytest.mark.parametrize("behaviour", ANSWERS)
def test_it_answers_as_the_address_says_and_then_well(
    provider: LocalProvider, sender: Sender, behaviour: str
) -> None:
    status, acted = ANSWERS[behaviour]
    first, headers = sender.send(f"/dedupes/{behaviour}/1/a", "k")
    assert (first, provider.count().effects) == (status, acted)
    assert ("retry-after" in headers) == (behaviour in ("throttle", "busy"))
    assert sender.send(f"/dedupes/{behaviour}/1/a", "k")[0] == 200
    assert provider.count().effects == 1


@pytest.mark.parametrize("behaviour", SILENCES)
def test_it_keeps_its_answer_to_itself(provider: LocalProvider, behaviour: str) -> None:
    acted, ended = SILENCES[behaviour]
    sender = Sender(provider.url, timeout_seconds=DRIP_SECONDS * 0.8)
    with closing(sender), pytest.raises((http.client.HTTPException, OSError)):
        sender.send(f"/dedupes/{behaviour}/1/a", "k")
    wait_until(lambda: provider.arrivals()[0].ended is not None, 5, "the sender's leaving")
    count = provider.count()
    assert (provider.arrivals()[0].ended, count.effects, count.unanswered) == (ended, acted, 1)


def test_a_compliant_receiver_acts_once_a_key(provider: LocalProvider, sender: Sender) -> None:
    assert [sender.send("/dedupes/ok/0/a", "k")[0] for _ in range(3)] == [200, 200, 200]
    count = provider.count()
    assert (count.arrivals, count.effects, count.duplicate_arrivals) == (3, 1, 2)
    assert (count.duplicate_effects, count.changed_keys, count.changed_bodies) == (0, 0, 0)


def test_a_second_key_for_the_same_subject_is_a_second_effect(
    provider: LocalProvider, sender: Sender
) -> None:
    """What the demo's zero means: a sender that changes its key would be caught."""
    sender.send("/dedupes/ok/0/a", "k")
    sender.send("/dedupes/ok/0/a", "other")
    assert (provider.count().duplicate_effects, provider.count().changed_keys) == (1, 1)


def test_other_bytes_under_the_same_key_are_seen(provider: LocalProvider, sender: Sender) -> None:
    sender.send("/dedupes/ok/0/a", "k")
    sender.send("/dedupes/ok/0/a", "k", BODY + b" ")
    assert provider.count().changed_bodies == 1


def test_the_plain_door_acts_every_time_and_counts_what_was_sent_again(
    provider: LocalProvider, sender: Sender
) -> None:
    for subject in ("ok/0/a", "error/1/b"):
        for _ in range(2):
            sender.send(f"/plain/{subject}", f"key of {subject}")
    count = provider.count()
    assert count.duplicate_effects == 1
    assert count.plain_sent_again == 1, "a refused one may come again, an accepted one may not"


def test_the_ledger_outlives_the_provider(tmp_path: Path) -> None:
    for _ in range(2):
        with local_provider(tmp_path) as provider, closing(Sender(provider.url)) as sender:
            sender.send("/dedupes/ok/0/a", "k")
            count = provider.count()
    assert (count.arrivals, count.effects, count.duplicate_arrivals) == (2, 1, 1)


def test_idle_connections_can_die_without_a_word(provider: LocalProvider, sender: Sender) -> None:
    sender.send("/dedupes/ok/0/a", "k")
    sender.connection.sock.settimeout(0.2)
    assert provider.deafen() == 1
    with pytest.raises(TimeoutError):
        sender.send("/dedupes/ok/0/b", "l")
    assert provider.count().arrivals == 1


def test_every_behaviour_has_a_test_here() -> None:
    assert {*ANSWERS, *SILENCES, Behaviour.GATE} == set(Behaviour)


def test_a_request_that_is_no_request_is_answered_and_cut(
    provider: LocalProvider, sender: Sender
) -> None:
    sender.connection.connect()
    sender.connection.sock.sendall(b"POST /dedupes/ok/0/a HTTP/1.1\r\ncontent-length: -1\r\n\r\n")
    assert sender.connection.sock.recv(1000).startswith(b"HTTP/1.1 400")
    assert provider.count().arrivals == 0
