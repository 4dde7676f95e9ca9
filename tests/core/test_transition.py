"""The one table: outcome → what becomes of the row and of its channel."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.channel import Facility
from fencepost.core.exchange import Facts
from fencepost.core.notification import AttemptOutcome, Kind, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.repeat import OTHER_BYTES
from fencepost.core.transition import CREDENTIAL_PAUSE_SECONDS, transition
from tests.core.rows import (
    ASKABLE,
    COLLAPSES,
    KEYED,
    NOTHING,
    TELLING,
    a_channel,
    a_claimed,
    a_sent,
)

A = AttemptOutcome
RESEND, HOLD, RECONCILE = OnUncertain.RESEND, OnUncertain.HOLD, OnUncertain.RECONCILE
LAST: dict[str, Any] = {"attempts": 8, "fence": 8}
OLD: dict[str, Any] = {"age_seconds": 86400.0}
DOUBT: dict[str, Any] = {"doubt": True}
ORDERED: dict[str, Any] = {**DOUBT, "resend_ordered": True}


@pytest.mark.parametrize(
    ("outcome", "row", "expected"),
    [
        (Delivered(), {}, (A.DELIVERED, Kind.DELIVERED, None)),
        (Delivered(), {**LAST, **DOUBT, **OLD}, (A.DELIVERED, Kind.DELIVERED, None)),
        (Delivered("T", receipt_due=True), {}, (A.DELIVERED, Kind.DELIVERED, "receipt_due")),
        (Failed("503"), {}, (A.FAILED, None, "failed")),
        (Failed("503"), {"attempts": 7, "fence": 7, **OLD}, (A.FAILED, None, "failed")),
        (Failed("503"), LAST, (A.FAILED, Kind.DEAD, "attempts_exhausted")),
        (Failed("503"), {**LAST, "attempts": 32767}, (A.FAILED, Kind.DEAD, "attempts_exhausted")),
        (Failed("503"), {**LAST, **DOUBT}, (A.FAILED, Kind.UNCERTAIN, "attempts_exhausted")),
        (Throttled("429"), {}, (A.NOT_SENT, None, "throttled")),
        (Throttled("429"), LAST, (A.NOT_SENT, None, "throttled")),
        (Throttled("429"), OLD, (A.NOT_SENT, Kind.DEAD, "too_old")),
        (Throttled("429"), {**OLD, **DOUBT}, (A.NOT_SENT, Kind.UNCERTAIN, "too_old")),
        (Rejected("400"), {}, (A.REJECTED, Kind.DEAD, "rejected")),
        (Rejected("400"), DOUBT, (A.REJECTED, Kind.DEAD, "rejected")),
        (Unregistered("410"), {}, (A.REJECTED, Kind.DEAD, "unregistered")),
        (CredentialFailure("401"), {}, (A.NOT_SENT, None, "credentials")),
        (CredentialFailure("401"), {**LAST, **OLD}, (A.NOT_SENT, None, "credentials")),
        (NotSent("dns"), {}, (A.NOT_SENT, None, "not_sent")),
        (NotSent("dns"), LAST, (A.NOT_SENT, None, "not_sent")),
        (NotSent("dns"), OLD, (A.NOT_SENT, Kind.DEAD, "too_old")),
        (NotSent("dns"), {**OLD, **DOUBT}, (A.NOT_SENT, Kind.UNCERTAIN, "too_old")),
        (Rejected(OTHER_BYTES), DOUBT, (A.HELD, Kind.UNCERTAIN, "other_bytes")),
        (Rejected(OTHER_BYTES), {}, (A.NOT_SENT, Kind.DEAD, "other_bytes")),
    ],
)
def test_each_outcome(
    outcome: Outcome, row: dict[str, Any], expected: tuple[A, Kind | None, str | None]
) -> None:
    word = transition(a_sent(a_claimed(**row)), outcome).word
    assert (word.outcome, word.kind, word.reason) == expected
    assert word.held == a_claimed(**row).held


@pytest.mark.parametrize(
    ("policy", "facility", "row", "kind", "why"),
    [
        (RESEND, KEYED, {}, None, "uncertain"),
        (RESEND, KEYED, {"first_attempt_age_seconds": 100.0}, None, "uncertain"),
        (RESEND, KEYED, {"first_attempt_age_seconds": 299.0}, Kind.UNCERTAIN, "window_passed"),
        (RESEND, Facility(deduplicates_for_seconds=1.0), {}, Kind.UNCERTAIN, "window_passed"),
        (RESEND, COLLAPSES, {"first_attempt_age_seconds": 9e9}, None, "uncertain"),
        (RESEND, NOTHING, {}, None, "uncertain"),
        (HOLD, KEYED, {}, Kind.UNCERTAIN, "held"),
        (HOLD, NOTHING, {"on_uncertain": RESEND}, None, "uncertain"),
        (RECONCILE, ASKABLE, {}, None, "uncertain"),
        (RECONCILE, TELLING, {}, None, "uncertain"),
        (RECONCILE, KEYED, {}, Kind.UNCERTAIN, "cannot_be_asked"),
        (RESEND, KEYED, {**ORDERED, "first_attempt_age_seconds": 9e9}, None, "uncertain"),
        (HOLD, NOTHING, ORDERED, None, "uncertain"),
        (RECONCILE, KEYED, ORDERED, None, "uncertain"),
        (RESEND, KEYED, {**ORDERED, **LAST}, Kind.UNCERTAIN, "attempts_exhausted"),
        (RESEND, KEYED, LAST, Kind.UNCERTAIN, "attempts_exhausted"),
        (RECONCILE, ASKABLE, LAST, Kind.UNCERTAIN, "attempts_exhausted"),
    ],
)
def test_uncertain_goes_by_the_policy(
    policy: OnUncertain, facility: Facility, row: dict[str, Any], kind: Kind | None, why: str
) -> None:
    sent = a_sent(a_claimed(**row), a_channel(on_uncertain=policy), facility)
    word = transition(sent, Uncertain("timeout")).word
    assert (word.outcome, word.kind, word.reason) == (A.UNCERTAIN, kind, why)


def test_an_uncertain_send_counts_its_own_time_against_the_window() -> None:
    sent = a_sent(facility=Facility(deduplicates_for_seconds=30.0), elapsed=29.0)
    assert transition(sent, Uncertain("timeout")).word.reason == "window_passed"


def test_waits_grow_with_attempts_or_with_refunds() -> None:
    failed = transition(a_sent(a_claimed(attempts=3, fence=9), roll=0.5), Failed("503"))
    assert failed.word.delay_seconds == 10.0
    deferred = transition(a_sent(a_claimed(attempts=3, fence=5), roll=0.5), NotSent("dns"))
    assert deferred.word.delay_seconds == 10.0


@pytest.mark.parametrize(
    "outcome", [Failed("503", 60.0), Throttled("429", 60.0), Uncertain("x", 60.0)]
)
def test_a_retry_after_is_kept(outcome: Outcome) -> None:
    sent = a_sent(facility=COLLAPSES, roll=0.5)
    assert transition(sent, outcome).word.delay_seconds == pytest.approx(66.0)


def test_a_throttle_pauses_the_channel_as_long_as_it_was_told() -> None:
    gate = transition(a_sent(roll=0.5), Throttled("429", 30.0)).gate
    assert gate is not None
    assert (gate.channel, gate.revision, gate.reason) == (1, 3, "throttled")
    assert gate.pause_seconds == pytest.approx(33.0)


def test_a_throttle_without_a_wish_still_pauses() -> None:
    gate = transition(a_sent(roll=0.0), Throttled("429")).gate
    assert gate is not None
    assert gate.pause_seconds == 1.0


def test_a_throttle_of_one_recipient_leaves_the_channel_open() -> None:
    assert transition(a_sent(), Throttled("429", 30.0, channel_wide=False)).gate is None


def test_a_credential_failure_pauses_with_its_reason() -> None:
    gate = transition(a_sent(), CredentialFailure("ExpiredProviderToken")).gate
    assert gate is not None
    assert gate.pause_seconds == CREDENTIAL_PAUSE_SECONDS
    assert gate.reason == "credentials: ExpiredProviderToken"


def test_the_facts_stay_and_the_reason_fills_an_empty_detail() -> None:
    facts = Facts(status=503, digest=b"d" * 16, took_ms=7)
    word = transition(a_sent(facts=facts), Failed("http 503")).word
    assert word.facts == Facts(status=503, digest=b"d" * 16, took_ms=7, detail="http 503")
    told = transition(a_sent(facts=Facts(detail="mine")), Failed("http 503")).word
    assert told.facts.detail == "mine"


def test_the_providers_reference_is_kept() -> None:
    assert transition(a_sent(), Delivered("msg-1")).word.facts.reference == "msg-1"


REASONS = st.text(max_size=20)
WISHES = st.none() | st.floats()
OUTCOMES = st.one_of(
    st.builds(Delivered),
    st.builds(Failed, REASONS, WISHES),
    st.builds(Throttled, REASONS, WISHES, st.booleans()),
    st.builds(Rejected, REASONS | st.just(OTHER_BYTES)),
    st.builds(Unregistered, REASONS),
    st.builds(CredentialFailure, REASONS),
    st.builds(NotSent, REASONS),
    st.builds(Uncertain, REASONS, WISHES),
)
ROWS = st.builds(
    a_claimed,
    fence=st.integers(1, 2**40),
    attempts=st.integers(0, 32767),
    doubt=st.booleans(),
    age_seconds=st.floats(-1e3, 1e6),
    first_attempt_age_seconds=st.none() | st.floats(-1e3, 1e6),
    on_uncertain=st.none() | st.sampled_from(OnUncertain),
)
PLACES = st.sampled_from([KEYED, NOTHING, COLLAPSES, ASKABLE])


@given(ROWS, OUTCOMES, PLACES, st.floats(0, 1, exclude_max=True), st.sampled_from(OnUncertain))
def test_every_transition_is_sane(
    row: Any, outcome: Outcome, facility: Facility, roll: float, policy: OnUncertain
) -> None:
    channel = a_channel(on_uncertain=policy)
    settled = transition(a_sent(row, channel, facility, roll=roll), outcome)
    word = settled.word
    assert word.held == row.held
    assert 0.0 <= word.delay_seconds <= 4320.0
    assert word.kind is None or word.delay_seconds == 0.0
    assert (word.kind is Kind.DELIVERED) == isinstance(outcome, Delivered)
    assert not (word.kind is Kind.DEAD and word.outcome is A.UNCERTAIN)
    if settled.gate is not None:
        assert isinstance(outcome, Throttled | CredentialFailure)
        assert settled.gate.revision == channel.revision
        assert 1.0 <= (settled.gate.pause_seconds or 0.0) <= 4320.0


@given(ROWS, OUTCOMES, st.floats(0, 1, exclude_max=True))
def test_policy_hold_never_leaves_a_doubtful_send_open(
    row: Any, outcome: Outcome, roll: float
) -> None:
    sent = a_sent(row, a_channel(on_uncertain=HOLD), NOTHING, roll=roll)
    word = transition(sent, outcome).word
    if word.outcome is A.UNCERTAIN and row.on_uncertain in (None, HOLD):
        assert word.kind is Kind.UNCERTAIN
