"""Policy `reconcile`: what an answer about an earlier attempt means."""

from typing import Any

import pytest

from fencepost.core.asking import AskLater, after_asking
from fencepost.core.doubt import CloseUnsent, SendIt
from fencepost.core.notification import AttemptOutcome, Kind
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
from tests.core.rows import ASKABLE, a_claimed, a_sent

DOUBT: dict[str, Any] = {"doubt": True, "fence": 2, "attempts": 2}


@pytest.mark.parametrize(
    ("outcome", "kind", "why"),
    [
        (Delivered(), Kind.DELIVERED, "reconciled"),
        (Rejected("400"), Kind.DEAD, "rejected"),
        (Unregistered("410"), Kind.DEAD, "unregistered"),
    ],
)
def test_a_clear_answer_closes(outcome: Outcome, kind: Kind, why: str) -> None:
    answer = after_asking(a_sent(a_claimed(**DOUBT), facility=ASKABLE), outcome)
    assert isinstance(answer, CloseUnsent)
    assert (answer.word.kind, answer.word.reason, answer.word.outcome) == (kind, why, None)


def test_a_recipient_said_to_be_gone_is_closed_with_the_providers_words() -> None:
    outcome = Unregistered("status unsubscribed", gone_at=1_700_000_000.0, guarded=True)
    answer = after_asking(a_sent(a_claimed(**DOUBT), facility=ASKABLE), outcome)
    assert isinstance(answer, CloseUnsent)
    facts = answer.word.facts
    assert (facts.reference, facts.detail) == (
        "gone_at=1700000000.000 guarded",
        "status unsubscribed",
    )


@pytest.mark.parametrize("outcome", [Failed("never seen"), NotSent("never seen")])
def test_what_never_arrived_is_sent_now_unless_it_expired_meanwhile(outcome: Outcome) -> None:
    assert isinstance(after_asking(a_sent(a_claimed(**DOUBT)), outcome), SendIt)
    late = a_sent(a_claimed(**DOUBT, expires_in_seconds=2.0), elapsed=2.0)
    answer = after_asking(late, outcome)
    assert isinstance(answer, CloseUnsent)
    assert answer.word.kind is Kind.EXPIRED


@pytest.mark.parametrize(
    "outcome", [None, Uncertain("cut off"), CredentialFailure("401"), Throttled("429", 60.0)]
)
def test_no_answer_is_told_and_asked_for_again_until_it_is_too_old(
    outcome: Uncertain | CredentialFailure | Throttled | None,
) -> None:
    answer = after_asking(a_sent(a_claimed(**DOUBT)), outcome)
    assert isinstance(answer, AskLater)
    assert (answer.word.kind, answer.word.outcome) == (None, AttemptOutcome.NOT_SENT)
    why = None if outcome is None else outcome.reason
    assert (answer.word.reason, answer.word.facts.detail) == ("no_answer", why)
    assert answer.word.delay_seconds == (66.0 if isinstance(outcome, Throttled) else 2.5)
    old = after_asking(a_sent(a_claimed(**DOUBT, age_seconds=86400.0)), outcome)
    assert isinstance(old, CloseUnsent)
    assert (old.word.kind, old.word.reason) == (Kind.UNCERTAIN, "too_old")
    asked = "the provider was asked, and could not say"
    assert old.word.facts.detail == (f"{asked}: {why}" if why else asked)
