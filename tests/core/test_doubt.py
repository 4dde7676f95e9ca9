"""A claimed row before anything is sent: every event against every state that matters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.channel import AttemptPolicy, Facility
from fencepost.core.doubt import Advice, AskProvider, AwaitEvidence, CloseUnsent, SendIt, advise
from fencepost.core.notification import AttemptOutcome, Kind, OnUncertain
from tests.core.rows import ASKABLE, COLLAPSES, KEYED, NOTHING, TELLING, a_channel, a_claimed

DOUBT: dict[str, Any] = {"doubt": True, "fence": 2, "attempts": 2, "interruptions": 1}
YOUNG = {**DOUBT, "first_attempt_age_seconds": 100.0}
RESEND, HOLD, RECONCILE = OnUncertain.RESEND, OnUncertain.HOLD, OnUncertain.RECONCILE


def told(advice: Advice) -> tuple[Kind | None, str | None] | type:
    match advice:
        case CloseUnsent(word):
            return word.kind, word.reason
        case _:
            return type(advice)


@pytest.mark.parametrize(
    ("row", "policy", "facility", "expected"),
    [
        # nothing is known: it is sent, whatever the policy
        ({}, HOLD, NOTHING, SendIt),
        ({"attempts": 8, "fence": 8}, HOLD, NOTHING, SendIt),
        # resend: inside the key window only; a collapse or no key at all: the duplicate was chosen
        (YOUNG, RESEND, KEYED, SendIt),
        ({**YOUNG, "first_attempt_age_seconds": 299.0}, RESEND, KEYED, SendIt),
        ({**YOUNG, "first_attempt_age_seconds": 300.0}, RESEND, KEYED, (Kind.UNCERTAIN, "window_passed")),
        ({**YOUNG, "first_attempt_age_seconds": None}, RESEND, KEYED, (Kind.UNCERTAIN, "window_passed")),
        ({**YOUNG, "first_attempt_age_seconds": 9e9}, RESEND, COLLAPSES, SendIt),
        ({**YOUNG, "first_attempt_age_seconds": 9e9}, RESEND, NOTHING, SendIt),
        ({**YOUNG, "first_attempt_age_seconds": 9e9}, RESEND, ASKABLE, SendIt),
        # an operator's order goes over policy and window; not over expiry, poison and the last attempt
        ({**YOUNG, "first_attempt_age_seconds": 9e9, "resend_ordered": True}, RESEND, KEYED, SendIt),
        ({**YOUNG, "first_attempt_age_seconds": None, "resend_ordered": True}, RESEND, KEYED, SendIt),
        ({**YOUNG, "resend_ordered": True}, HOLD, NOTHING, SendIt),
        ({**YOUNG, "resend_ordered": True, "on_uncertain": RECONCILE}, HOLD, ASKABLE, SendIt),
        ({**YOUNG, "resend_ordered": True, "expires_in_seconds": 0.0}, HOLD, KEYED, (Kind.EXPIRED, "expired_in_doubt")),
        ({**YOUNG, "resend_ordered": True, "interruptions": 3}, HOLD, KEYED, (Kind.DEAD, "poison")),
        ({**YOUNG, "resend_ordered": True, "attempts": 9}, HOLD, KEYED, (Kind.UNCERTAIN, "attempts_exhausted")),
        ({**YOUNG, "resend_ordered": True, "evidence": AttemptOutcome.DELIVERED}, HOLD, KEYED,
         (Kind.DELIVERED, "already_delivered")),
        # hold, whatever the provider offers; reconcile where it can be asked
        (YOUNG, HOLD, KEYED, (Kind.UNCERTAIN, "held")),
        (YOUNG, HOLD, ASKABLE, (Kind.UNCERTAIN, "held")),
        (YOUNG, RECONCILE, ASKABLE, AskProvider),
        (YOUNG, RECONCILE, KEYED, (Kind.UNCERTAIN, "cannot_be_asked")),
        # reconcile where it tells by itself: waited for as long again, until its time is over; unknown is too old
        ({**YOUNG, "doubt_age_seconds": 0.0}, RECONCILE, TELLING, AwaitEvidence),
        ({**YOUNG, "doubt_age_seconds": 599.0}, RECONCILE, TELLING, AwaitEvidence),
        ({**YOUNG, "doubt_age_seconds": 600.0}, RECONCILE, TELLING, (Kind.UNCERTAIN, "no_evidence")),
        ({**YOUNG, "doubt_age_seconds": None}, RECONCILE, TELLING, (Kind.UNCERTAIN, "no_evidence")),
        ({**YOUNG, "first_attempt_age_seconds": 9e9, "doubt_age_seconds": 1.0}, RECONCILE, TELLING, AwaitEvidence),
        (YOUNG, HOLD, TELLING, (Kind.UNCERTAIN, "held")),
        (YOUNG, RESEND, TELLING, SendIt),
        ({**YOUNG, "doubt_age_seconds": 1.0, "on_uncertain": RECONCILE}, HOLD, TELLING, AwaitEvidence),
        # the notification's own word over its channel's
        ({**YOUNG, "on_uncertain": RESEND}, HOLD, KEYED, SendIt),
        ({**YOUNG, "on_uncertain": HOLD}, RESEND, KEYED, (Kind.UNCERTAIN, "held")),
        # evidence: delivered closes before anything else; anything else has cleared the doubt, or not
        ({**YOUNG, "evidence": AttemptOutcome.DELIVERED}, RESEND, KEYED, (Kind.DELIVERED, "already_delivered")),
        ({"evidence": AttemptOutcome.DELIVERED, "expires_in_seconds": -1.0, "interruptions": 9}, HOLD, NOTHING,
         (Kind.DELIVERED, "already_delivered")),
        ({**YOUNG, "evidence": AttemptOutcome.FAILED}, HOLD, NOTHING, (Kind.UNCERTAIN, "held")),
        ({"fence": 2, "evidence": AttemptOutcome.FAILED}, HOLD, NOTHING, SendIt),
        # expiry: 0 has expired; in doubt it says so
        ({"expires_in_seconds": 0.0}, RESEND, KEYED, (Kind.EXPIRED, "expired")),
        ({"expires_in_seconds": 0.001}, RESEND, KEYED, SendIt),
        ({**YOUNG, "expires_in_seconds": -4.0}, RESEND, KEYED, (Kind.EXPIRED, "expired_in_doubt")),
        # poison: three runs died of it
        ({**YOUNG, "interruptions": 2}, RESEND, KEYED, SendIt),
        ({**YOUNG, "interruptions": 3}, RESEND, KEYED, (Kind.DEAD, "poison")),
        ({**YOUNG, "interruptions": 32767}, HOLD, NOTHING, (Kind.DEAD, "poison")),
        # no attempt left: dead, but what is in doubt is not called dead
        ({"attempts": 9, "fence": 9}, RESEND, KEYED, (Kind.DEAD, "attempts_exhausted")),
        ({**YOUNG, "attempts": 9, "fence": 9}, RESEND, KEYED, (Kind.UNCERTAIN, "attempts_exhausted")),
    ],
)  # fmt: skip
def test_what_becomes_of_a_claimed_row(
    row: dict[str, Any],
    policy: OnUncertain,
    facility: Facility,
    expected: tuple[Kind, str] | type,
) -> None:
    assert told(advise(a_claimed(**row), a_channel(on_uncertain=policy), facility)) == expected


@pytest.mark.parametrize(
    ("elapsed", "margin", "sends"), [(0, 0, 1), (150, 0, 1), (150, 60, 0), (201, 0, 0)]
)
def test_a_resend_must_end_inside_the_window(elapsed: float, margin: float, sends: int) -> None:
    advice = advise(
        a_claimed(**YOUNG), a_channel(), KEYED, elapsed_seconds=elapsed, margin_seconds=margin
    )
    assert isinstance(advice, SendIt) == bool(sends)


def test_a_row_that_expires_while_it_waits_is_not_sent() -> None:
    claimed = a_claimed(expires_in_seconds=5.0)
    assert told(advise(claimed, a_channel(), KEYED, elapsed_seconds=5.0)) == (
        Kind.EXPIRED,
        "expired",
    )


@pytest.mark.parametrize(
    ("age", "elapsed", "delay"),
    [(0.0, 0.0, 5.0), (3.0, 0.0, 5.0), (40.0, 0.0, 40.0), (30.0, 10.0, 40.0), (590.0, 0.0, 10.0), (500.0, 90.0, 10.0)],
)  # fmt: skip
def test_evidence_is_waited_for_as_long_again_and_never_past_its_time(
    age: float, elapsed: float, delay: float
) -> None:
    claimed = a_claimed(**YOUNG, doubt_age_seconds=age)
    channel = a_channel(on_uncertain=RECONCILE)
    advice = advise(claimed, channel, TELLING, elapsed_seconds=elapsed, margin_seconds=60.0)
    assert advice == AwaitEvidence(delay)


def test_silence_closes_it_and_the_row_says_by_which_rule() -> None:
    claimed = a_claimed(**YOUNG, doubt_age_seconds=700.0)
    advice = advise(claimed, a_channel(on_uncertain=RECONCILE), TELLING)
    assert isinstance(advice, CloseUnsent)
    assert advice.word.facts.detail == (
        "the provider tells within 600 s of a send, and has told nothing"
    )


ROWS = st.builds(
    a_claimed,
    fence=st.integers(1, 50),
    attempts=st.integers(0, 50),
    interruptions=st.integers(0, 6),
    doubt=st.booleans(),
    age_seconds=st.floats(-100, 1e6),
    first_attempt_age_seconds=st.none() | st.floats(-100, 1e4),
    doubt_age_seconds=st.none() | st.floats(-100, 1e4),
    evidence=st.none() | st.sampled_from(AttemptOutcome),
    expires_in_seconds=st.none() | st.floats(-1e3, 1e3),
    on_uncertain=st.none() | st.sampled_from(OnUncertain),
    resend_ordered=st.booleans(),
)
FACILITIES = st.builds(
    Facility,
    deduplicates_for_seconds=st.none() | st.floats(0, 1e4),
    collapses=st.booleans(),
    can_be_asked=st.booleans(),
    evidence_within_seconds=st.none() | st.floats(0, 1e4),
)


@given(ROWS, FACILITIES, st.sampled_from(OnUncertain))
def test_what_is_sent_is_open_to_it(row: Any, facility: Facility, policy: OnUncertain) -> None:
    advice = advise(row, a_channel(on_uncertain=policy), facility)
    policy = RESEND if row.resend_ordered else row.on_uncertain or policy
    match advice:
        case CloseUnsent(word):
            assert word.held == row.held
            assert word.kind is not None
            assert word.outcome in (None, AttemptOutcome.HELD)
        case AskProvider():
            assert (row.doubt, policy, facility.can_be_asked) == (True, RECONCILE, True)
        case AwaitEvidence(delay):
            assert (row.doubt, policy, facility.can_be_asked) == (True, RECONCILE, False)
            within, age = facility.evidence_within_seconds, row.doubt_age_seconds
            assert within is not None
            assert age < within
            assert 0 < delay <= within
        case SendIt():
            assert row.evidence is not AttemptOutcome.DELIVERED
            assert row.expires_in_seconds is None or row.expires_in_seconds > 0
            assert row.interruptions < AttemptPolicy().interruptions_max
            assert not row.doubt or policy is RESEND
