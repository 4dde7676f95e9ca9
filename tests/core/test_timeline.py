"""How one attempt reads: what came of it once, in words, and no code of ours in front of it."""

import pytest

from fencepost.core.explain import explain
from fencepost.core.inspection import AttemptRecord
from fencepost.core.notification import AttemptOutcome, Kind
from fencepost.core.reply import Phase
from tests.core.test_explain import attempt, closed, evidence, row, seen

NOT_SENT, UNCERTAIN = AttemptOutcome.NOT_SENT, AttemptOutcome.UNCERTAIN
TOLD: dict[str, tuple[AttemptRecord, str]] = {
    "throttled: it was sent, and does not count": (
        attempt(NOT_SENT, phase=Phase.ANSWERED, status=429, detail="throttled: answered 429"),
        "turned away (does not count as an attempt) (status 429): answered 429",
    ),
    "nobody listened": (
        attempt(NOT_SENT, phase=Phase.NOT_SENT, took_ms=3, detail="not_sent: connect: refused"),
        "not sent (does not count as an attempt) (nothing had left, 3 ms): connect: refused",
    ),
    "no answer": (
        attempt(UNCERTAIN, phase=Phase.UNCERTAIN, detail="uncertain: connection_lost"),
        "in doubt: it may have been accepted (no full answer): connection_lost",
    ),
    "a code that says more than the outcome stays": (
        attempt(NOT_SENT, phase=Phase.NOT_SENT, detail="credentials: token expired"),
        "not sent (does not count as an attempt) (nothing had left): credentials: token expired",
    ),
    "a detail that is no more than the code says nothing": (
        attempt(AttemptOutcome.HELD, detail="held"),
        "nothing was sent: it is in doubt, and held",
    ),
    "a question that was not answered": (
        attempt(NOT_SENT, detail="no_answer: answered 200 with missing_scope"),
        "the provider was asked what became of the one before, and could not say: "
        "answered 200 with missing_scope",
    ),
    "a question that was not answered, nobody knows why": (
        attempt(NOT_SENT, detail="no_answer"),
        "the provider was asked what became of the one before, and could not say",
    ),
}


@pytest.mark.parametrize(("one", "words"), TOLD.values(), ids=TOLD.keys())
def test_what_came_back_is_said_once(one: AttemptRecord, words: str) -> None:
    told = explain(seen(open=row(), attempts=(one,)))
    assert told.timeline[-1].text == f"attempt 1: {words}"


def test_a_receipt_that_was_asked_for_is_no_callback() -> None:
    fact = evidence(AttemptOutcome.FAILED, detail="receipt: InvalidCredentials")
    told = explain(seen(open=row(), evidence=(fact,))).timeline
    assert told[-1].text == "evidence from a receipt about attempt 1: failed: InvalidCredentials"


def test_the_reason_for_doubt_is_said_once() -> None:
    one = attempt(UNCERTAIN, phase=Phase.UNCERTAIN, detail="uncertain: timeout: nothing more")
    (doubt,) = explain(seen(open=row(), attempts=(one,))).doubts
    assert (
        doubt == "attempt 1: the request left and no full answer came back: timeout: nothing more"
    )


def test_a_reason_that_only_repeats_the_kind_is_left_out() -> None:
    told = explain(seen(closed=closed(Kind.CANCELLED, "cancelled")))
    assert told.timeline[-1].text == "closed as cancelled"
