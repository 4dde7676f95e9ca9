"""Receipts of Expo while sandboxes are killed and frozen: a question may be lost, an answer never counts twice."""

import json
from collections.abc import Iterator

import pytest

from rig.ground import wait_until
from rig.runtimes import Runtime
from tests.drills.ground import ANSWER_SECONDS, POLICY, Ground, event
from tests.senders.test_expo import ACCESS, PushService
from tests.senders.threaded import serving

COUNT = 3
LATER = "update fencepost.closed set closed_at = closed_at - %(seconds)s * interval '1 s'"
REASONS = "select distinct reason from fencepost.closed"
EVIDENCE = "select outcome::text, count(*) from fencepost.evidence group by 1"
MINUTE, HOUR = 60, 3600


@pytest.fixture
def expo(ground: Ground) -> Iterator[PushService]:
    service = PushService()
    with serving(service.script) as port:
        channel = {
            "name": "way",
            "sender": "expo",
            "settings": {"endpoint": f"http://127.0.0.1:{port}"},
            "secret_reference": "env:EXPO_TOKEN",
            "on_uncertain": "hold",
            "policy": POLICY,
        }
        ground.connection.execute("select fencepost.bind('drill')")
        apply = "select * from fencepost.channel_apply(%s::jsonb)"
        ground.connection.execute(apply, (json.dumps([channel]),))
        yield service


def delivered(ground: Ground, count: int = COUNT) -> Runtime:
    """So many that Expo took a good quarter of an hour ago; and a warm runtime."""
    for number in range(count):
        to = f"ExponentPushToken[{number}]"
        ground.connection.execute(
            "select fencepost.enqueue('way', %s, '{\"title\": \"t\"}')", (to,)
        )
    runtime = ground.runtime({"EXPO_TOKEN": ACCESS})
    ground.run_until(ground.closed, runtime)
    assert ground.rows(REASONS) == [("receipt_due",)]
    later(ground, 16 * MINUTE)
    return runtime


def later(ground: Ground, seconds: int) -> None:
    ground.connection.execute(LATER, {"seconds": seconds})


def tick(runtime: Runtime) -> None:
    assert runtime.invoke(event("receipts")).summary is not None


def asked(expo: PushService) -> list[str]:
    return sorted(id for ids in expo.asked_for for id in ids)


def test_killed_between_question_and_answer_it_is_asked_again_later(
    ground: Ground, expo: PushService
) -> None:
    runtime = delivered(ground)
    expo.mute = True
    invoked = ground.invoke(runtime)
    wait_until(lambda: len(asked(expo)) == COUNT, 20, "the question")
    runtime.kill()
    invoked.result(
        ANSWER_SECONDS
    )  # a machine so slow that it was over already has lost its question as well
    expo.mute = False
    expo.tickets = {f"T-{n}": {"status": "ok"} for n in range(1, COUNT + 1)}
    tick(runtime)
    assert len(asked(expo)) == COUNT, "not at once: it was asked about"
    assert ground.rows(REASONS) == [("receipt_late",)]
    later(ground, 2 * HOUR)
    tick(runtime)
    assert ground.rows(REASONS) == [(None,)]
    assert ground.rows(EVIDENCE) == [("delivered", COUNT)]
    ground.assert_conserved()


def test_an_answer_that_thaws_after_another_was_told_changes_nothing(
    ground: Ground, expo: PushService
) -> None:
    first = delivered(ground)
    expo.mute = True
    invoked = ground.invoke(first)
    wait_until(lambda: len(asked(expo)) == COUNT, 20, "the question")
    first.freeze()
    gone = {"status": "error", "details": {"error": "DeviceNotRegistered"}}
    expo.tickets = {f"T-{n}": gone for n in range(1, COUNT + 1)}
    before = expo.answered
    expo.mute = False
    wait_until(lambda: expo.answered > before, 20, "an answer that nobody reads yet")
    second = ground.runtime({"EXPO_TOKEN": ACCESS})
    expo.tickets = {f"T-{n}": {"status": "ok"} for n in range(1, COUNT + 1)}
    later(ground, 2 * HOUR)
    tick(second)
    assert ground.rows(REASONS) == [(None,)]
    first.thaw()
    assert invoked.result(ANSWER_SECONDS).summary is not None
    assert ground.rows(REASONS) == [(None,)]
    assert ground.rows(EVIDENCE) == [("delivered", COUNT)]
    assert ground.number("select count(*) from fencepost.unregistered") == 0


def test_two_at_once_share_the_questions(ground: Ground, expo: PushService) -> None:
    first, count = delivered(ground, 40), 40
    second = ground.runtime({"EXPO_TOKEN": ACCESS})
    expo.tickets = {f"T-{n}": {"status": "ok"} for n in range(1, count + 1)}
    expo.mute = True
    invoked = ground.invoke(first)
    wait_until(lambda: len(asked(expo)) == count, 20, "the question of the first")
    tick(second)
    expo.mute = False
    assert invoked.result(ANSWER_SECONDS).summary is not None
    assert asked(expo) == sorted(expo.tickets), "each once"
    later(ground, 2 * HOUR)  # for a machine so slow that the first gave up
    tick(second)
    assert ground.rows(EVIDENCE) == [("delivered", count)]


def test_a_provider_that_is_mute_keeps_no_tick_from_its_end_and_no_other_channel_waits(
    ground: Ground, expo: PushService
) -> None:
    runtime = delivered(ground)
    expo.mute = True
    tick(runtime)  # ends well before its function's time
    assert len(asked(expo)) == COUNT
    ground.channel("other")
    recipient = f"{ground.root()}/dedupes/ok/1/one"
    ground.connection.execute("select fencepost.enqueue('other', %s, '{}')", (recipient,))
    later(ground, 2 * HOUR)
    tick(runtime)
    assert ground.closed(), "sent first, asked afterwards"
    assert len(asked(expo)) == 2 * COUNT
    missed = "select distinct reason from fencepost.closed where reference like 'T-%'"
    assert ground.rows(missed) == [("receipt_last",)]
    assert "token" not in runtime.log().lower()
