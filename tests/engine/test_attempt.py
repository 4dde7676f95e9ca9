"""Whatever a sender does, one reply with a meaning comes of it, for that row only (G7, G9, G10)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fencepost import attempt as module
from fencepost.attempt import ask, attempt
from fencepost.core.channel import Facility
from fencepost.core.exchange import Facts
from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Uncertain,
)
from fencepost.core.repeat import OTHER_BYTES
from fencepost.core.reply import Phase, Reply
from fencepost.core.step import Replied
from fencepost.ports import Prepared, SendCancelled
from tests.engine.fakes import ACCEPTED, BOUND_SECONDS, FakeSender, row

SECRET = "hunter2"
DIGEST = bytes(range(16))


def send(sender: FakeSender, claimed: Claimed | None = None, *, timeout: float = 1.0) -> Replied:
    async def whole() -> Replied:
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(BOUND_SECONDS):
            return await attempt(sender, claimed or row(), timeout_seconds=timeout, clock=clock)

    return asyncio.run(whole())


def broken(error: BaseException) -> Callable[..., Awaitable[Reply]]:
    async def raises(claimed: Claimed) -> Reply:
        raise error

    return raises


def raising(error: Exception) -> Callable[..., Outcome]:
    def raises(_: object) -> Outcome:
        raise error

    return raises


def test_what_is_delivered_leaves_its_facts() -> None:
    sender = FakeSender(on_prepare=lambda claimed: Prepared(DIGEST, "request"))
    replied = send(sender)
    assert replied.held == row().held
    assert replied.outcome == Delivered("reference-1")
    assert replied.facts == Facts(
        phase=Phase.ANSWERED,
        status=200,
        reference="reference-1",
        digest=DIGEST,
        took_ms=replied.facts.took_ms,
    )


def test_a_message_that_cannot_be_made_is_not_sent() -> None:
    sender = FakeSender(on_prepare=lambda claimed: Rejected("no address"))
    replied = send(sender)
    assert replied.outcome == Rejected("no address")
    assert sender.begun == []
    assert replied.facts.digest is None


@pytest.mark.parametrize(
    ("sender", "outcome", "phase"),
    [
        (FakeSender(on_prepare=raising(KeyError(SECRET))), Failed, None),
        (FakeSender(on_send=broken(ValueError(SECRET))), Uncertain, Phase.UNCERTAIN),
        (FakeSender(on_classify=raising(TypeError(SECRET))), Uncertain, Phase.ANSWERED),
    ],
    ids=["prepare", "send", "classify"],
)
def test_a_bug_of_the_sender_is_an_outcome_of_its_row_and_quotes_nothing(
    sender: FakeSender, outcome: type[Outcome], phase: Phase | None
) -> None:
    replied = send(sender)
    assert isinstance(replied.outcome, outcome)
    assert replied.facts.phase == phase
    assert "test_attempt.py:" in (replied.facts.detail or ""), "says where it broke"
    assert SECRET not in repr(replied)
    assert "payload-secret" not in repr(replied)
    assert "recipient-secret" not in repr(replied)


def test_a_bug_in_reading_that_nothing_left_costs_an_attempt_and_leaves_no_doubt() -> None:
    async def refused(claimed: Claimed) -> Reply:
        return Reply(phase=Phase.NOT_SENT, error="refused")

    sender = FakeSender(on_send=refused, on_classify=raising(TypeError(SECRET)))
    assert isinstance(send(sender).outcome, Failed)


def test_a_send_that_outlives_its_timeout_is_cut_off_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.01)

    async def hang(claimed: Claimed) -> Reply:
        await asyncio.Event().wait()
        return ACCEPTED

    replied = send(FakeSender(on_send=hang), timeout=0.01)
    assert replied.outcome == Uncertain("the sender outlived its timeout")
    assert replied.facts.phase is Phase.UNCERTAIN


def test_a_stopped_send_is_read_by_the_phase_it_reached() -> None:
    stopped = SendCancelled(Reply(phase=Phase.NOT_SENT, error="stopped while connecting"))
    sender = FakeSender(
        on_send=broken(stopped),
        on_classify=lambda reply: NotSent(reply.error),
    )
    replied = send(sender)
    assert replied.outcome == NotSent("stopped while connecting")
    assert replied.facts.phase is Phase.NOT_SENT


def test_a_stopped_send_whose_answer_was_there_is_delivered() -> None:
    assert send(FakeSender(on_send=broken(SendCancelled(ACCEPTED)))).outcome == Delivered(
        "reference-1"
    )


def test_a_bare_stop_says_nothing_and_is_doubt() -> None:
    outcome = send(FakeSender(on_send=broken(asyncio.CancelledError()))).outcome
    assert outcome == Uncertain("stopped while it was being sent")


@pytest.mark.parametrize("ordered", [False, True])  # nobody's order makes other bytes the same
@pytest.mark.parametrize(
    ("first", "age", "window", "leaves"),
    [
        (DIGEST, 10.0, 3600.0, True),  # the same bytes
        (bytes(16), 10.0, 3600.0, False),  # others, and the provider knows the key
        (bytes(16), 3600.0, 3600.0, True),  # others, and the key is forgotten
        (bytes(16), None, 3600.0, True),  # others, but nothing ever left
        (bytes(16), 10.0, None, True),  # others, and the provider knows no keys
        (None, 10.0, 3600.0, True),
    ],
)
def test_a_repeat_with_other_bytes_does_not_leave_inside_the_key_window(
    first: bytes | None, age: float | None, window: float | None, leaves: bool, ordered: bool
) -> None:
    earlier: dict[str, Any] = {"first_digest": first, "first_attempt_age_seconds": age}
    sender = FakeSender(
        facility=Facility(deduplicates_for_seconds=window),
        on_prepare=lambda claimed: Prepared(DIGEST, "request"),
    )
    replied = send(sender, row(**earlier, resend_ordered=ordered))
    assert bool(sender.begun) is leaves
    assert (replied.outcome == Rejected(OTHER_BYTES)) is not leaves
    assert replied.facts.digest == DIGEST


@pytest.mark.parametrize("error", [KeyError(SECRET), asyncio.CancelledError(), TimeoutError()])
def test_a_sender_that_breaks_when_asked_could_not_say(error: BaseException) -> None:
    async def raises(claimed: Claimed) -> Outcome | None:
        raise error

    sender = FakeSender(on_ask=raises)
    asked = asyncio.run(ask(sender, row(), timeout_seconds=1.0))
    assert isinstance(asked.outcome, Uncertain)
