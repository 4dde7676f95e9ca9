"""The story of one notification, as tables: facts on the left, words on the right."""

from typing import Any

import pytest

from fencepost.core.asking import ASKED_NOT_THERE
from fencepost.core.channel import AttemptPolicy
from fencepost.core.exchange import Verdict
from fencepost.core.explain import doubtful, explain
from fencepost.core.inspection import (
    AttemptRecord,
    ChannelStanding,
    ClosedStanding,
    EvidenceRecord,
    Inspection,
    JournalRecord,
    OpenStanding,
    OperationRecord,
)
from fencepost.core.notification import AttemptOutcome, Kind, OnUncertain
from fencepost.core.prospect import next_step, standing
from fencepost.core.reply import Phase

RUN, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"


def at(minute: int) -> str:
    return f"2030-01-01T00:{minute:02}:00.000Z"


def channel(**said: Any) -> ChannelStanding:
    given: dict[str, Any] = {
        "name": "push",
        "sender": "webhook",
        "on_uncertain": OnUncertain.HOLD,
        "policy": AttemptPolicy(attempts_max=8, interruptions_max=3),
        "revision": 1,
        "paused": False,
        "paused_for_seconds": None,
        "pause_reason": None,
    }
    return ChannelStanding(**{**given, **said})


def row(**said: Any) -> OpenStanding:
    """Open, due now, never claimed."""
    given: dict[str, Any] = {
        "fence": 0,
        "attempts": 0,
        "interruptions": 0,
        "doubt": False,
        "resend": False,
        "due_at": at(0),
        "due_in_seconds": -5.0,
        "run": None,
        "invocation": None,
        "claimed_at": None,
        "lease_until": None,
        "lease_left_seconds": None,
    }
    return OpenStanding(**{**given, **said})


def held_row(lease_left_seconds: float, **said: Any) -> OpenStanding:
    return row(
        **{
            "fence": 1,
            "attempts": 1,
            "run": RUN,
            "invocation": "tick-7",
            "claimed_at": at(1),
            "lease_until": at(2),
            "lease_left_seconds": lease_left_seconds,
            **said,
        }
    )


def closed(kind: Kind, reason: str | None = None) -> ClosedStanding:
    return ClosedStanding(kind=kind, reason=reason, at=at(9), fence=1, attempts=1)


def attempt(outcome: AttemptOutcome = AttemptOutcome.UNCERTAIN, **said: Any) -> AttemptRecord:
    given: dict[str, Any] = {
        "fence": 1,
        "run": RUN,
        "invocation": "tick-7",
        "run_deadline_at": None,
        "run_ended_at": None,
        "claimed_at": at(1),
        "at": at(2),
        "took_ms": None,
        "phase": None,
        "status": None,
        "reference": None,
        "digest": None,
        "detail": None,
        "taken_over": False,
        "closing": False,
    }
    return AttemptRecord(outcome=outcome, **{**given, **said})


def evidence(outcome: AttemptOutcome, **said: Any) -> EvidenceRecord:
    given: dict[str, Any] = {
        "fence": 1,
        "run": None,
        "source": "callback",
        "at": at(5),
        "reference": None,
        "detail": None,
    }
    return EvidenceRecord(outcome=outcome, **{**given, **said})


def seen(**said: Any) -> Inspection:
    given: dict[str, Any] = {
        "id": 7,
        "now": at(30),
        "idempotency_key": "11111111-0000-4000-8000-000000000000",
        "priority": 1,
        "replay_of": None,
        "on_uncertain": None,
        "created_at": at(0),
        "due_at": at(0),
        "expires_at": None,
        "expires_in_seconds": None,
        "recipient": None,
        "dedupe_key": None,
        "payload": None,
        "channel": channel(),
        "open": None,
        "closed": None,
        "attempts": (),
        "evidence": (),
        "journal": (),
        "operations": (),
    }
    return Inspection(**{**given, **said})


DELIVERED = AttemptOutcome.DELIVERED
NEXT: dict[str, tuple[Inspection, str]] = {
    "due now": (seen(open=row()), "at the next tick a run sends it (0 of 8 attempts used up)"),
    "due later": (
        seen(open=row(due_in_seconds=200.0, attempts=2)),
        "in 3 min 20 s a run sends it (2 of 8 attempts used up)",
    ),
    "channel paused for a time": (
        seen(
            open=row(),
            channel=channel(paused=True, paused_for_seconds=60.0, pause_reason="throttled"),
        ),
        "nothing for 1 min: channel push is paused (throttled); then a run sends it (0 of 8 attempts used up)",
    ),
    "channel paused for ever": (
        seen(open=row(), channel=channel(paused=True, pause_reason="credentials")),
        "nothing until somebody resumes channel push, which is paused (credentials); "
        "then a run sends it (0 of 8 attempts used up)",
    ),
    "leased": (
        seen(open=held_row(12.0)),
        "its run settles it, or its lease ends in 12 s and the next run takes it over in doubt; "
        "then it is not sent again but closed as uncertain, for an operator or for evidence",
    ),
    "lease over, hold": (
        seen(open=held_row(-12.0)),
        "at the next tick a run takes it up in doubt: it is not sent again but closed as uncertain, "
        "for an operator or for evidence",
    ),
    "in doubt, resend": (
        seen(open=row(doubt=True, attempts=1), channel=channel(on_uncertain=OnUncertain.RESEND)),
        "at the next tick a run takes it up in doubt: it is sent again with the same idempotency key; "
        "by a provider that drops repeats for a while only within that while, and held after that",
    ),
    "the notification's own policy goes over its channel's": (
        seen(open=row(doubt=True, attempts=1), on_uncertain=OnUncertain.RECONCILE),
        "at the next tick a run takes it up in doubt: the provider is asked first what became of it",
    ),
    "an operator's word goes over both": (
        seen(open=row(doubt=True, resend=True)),
        "at the next tick a run takes it up in doubt: it is sent again with the same idempotency key, "
        "as an operator ordered, whether or not the provider still knows the key",
    ),
    "evidence of delivery goes over everything": (
        seen(
            open=row(doubt=True, interruptions=9, attempts=99),
            expires_in_seconds=-1.0,
            evidence=(evidence(DELIVERED),),
        ),
        "at the next tick a run closes it as delivered without sending: there is evidence of delivery",
    ),
    "expired": (
        seen(open=row(), expires_in_seconds=-1.0),
        "at the next tick a run closes it as expired without sending",
    ),
    "expires before it is due again": (
        seen(open=row(due_in_seconds=60.0), expires_in_seconds=30.0),
        "in 1 min a run closes it as expired without sending",
    ),
    "expires while its channel is paused": (
        seen(
            open=row(),
            expires_in_seconds=30.0,
            channel=channel(paused=True, paused_for_seconds=60.0),
        ),
        "nothing for 1 min: channel push is paused; then a run closes it as expired without sending",
    ),
    "expires later": (
        seen(open=row(due_in_seconds=10.0), expires_in_seconds=30.0),
        "in 10 s a run sends it (0 of 8 attempts used up)",
    ),
    "poison": (
        seen(open=row(interruptions=3, doubt=True)),
        "at the next tick a run parks it as dead without sending: 3 runs died holding it (poison)",
    ),
    "poison by the lease that just ran out": (
        seen(open=held_row(-1.0, interruptions=2)),
        "at the next tick a run parks it as dead without sending: 3 runs died holding it (poison)",
    ),
    "attempts used up": (
        seen(open=row(attempts=8)),
        "at the next tick a run parks it as dead without sending: its 8 attempts are used up",
    ),
    "attempts used up, in doubt": (
        seen(open=row(attempts=8, doubt=True)),
        "at the next tick a run parks it as uncertain, because it is in doubt, without sending: "
        "its 8 attempts are used up",
    ),
    "delivered": (seen(closed=closed(Kind.DELIVERED)), "nothing: it is delivered"),
    "dead": (
        seen(closed=closed(Kind.DEAD)),
        "nothing, until somebody sends it again: fencepost redrive 7",
    ),
    "uncertain": (
        seen(closed=closed(Kind.UNCERTAIN)),
        "nothing, until evidence comes or somebody decides: "
        "fencepost uncertain resolve 7 --delivered, --not-delivered, --dead or --resend, with --why",
    ),
    "cancelled": (
        seen(closed=closed(Kind.CANCELLED)),
        "nothing (evidence of delivery would still turn it into delivered)",
    ),
    "removed by hand": (seen(), "nothing: no run can find it"),
}


@pytest.mark.parametrize("case", NEXT)
def test_what_happens_next(case: str) -> None:
    facts, words = NEXT[case]
    assert next_step(facts) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (seen(open=row()), "open: waiting, nobody holds it"),
        (seen(open=row(doubt=True)), "open: waiting, nobody holds it, in doubt"),
        (seen(open=held_row(12.0)), "open: leased by run aaaaaaaa for another 12 s"),
        (
            seen(open=held_row(-12.0)),
            "open: run aaaaaaaa held it and its lease ran out 12 s ago",
        ),
        (seen(closed=closed(Kind.DEAD, "rejected")), f"dead: closed at {at(9)} (rejected)"),
        (
            seen(),
            "neither open nor closed: its row was removed by hand, which no function of the schema does",
        ),
    ],
)
def test_where_it_stands(facts: Inspection, words: str) -> None:
    assert standing(facts) == words


UNCERTAIN = (attempt(),)


@pytest.mark.parametrize(
    ("attempts", "facts", "fences"),
    [
        (UNCERTAIN, (), [1]),
        (UNCERTAIN, (evidence(AttemptOutcome.NOT_SENT),), []),
        (UNCERTAIN, (evidence(AttemptOutcome.REJECTED, run=RUN),), []),
        (UNCERTAIN, (evidence(AttemptOutcome.FAILED, run=OTHER),), [1]),  # speaks for its own only
        (UNCERTAIN, (evidence(AttemptOutcome.FAILED, fence=2),), [1]),
        (UNCERTAIN, (evidence(DELIVERED, fence=2),), []),
        ((attempt(), attempt(fence=2)), (evidence(AttemptOutcome.NOT_SENT),), [2]),
        ((attempt(AttemptOutcome.FAILED),), (), []),
    ],
)
def test_which_attempts_are_in_doubt(
    attempts: tuple[AttemptRecord, ...], facts: tuple[EvidenceRecord, ...], fences: list[int]
) -> None:
    found = doubtful(seen(open=row(), attempts=attempts, evidence=facts))
    assert [one.fence for one in found] == fences


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            attempt(detail="connection\nreset"),
            "attempt 1: the request left and no full answer came back: connection reset",
        ),
        (
            attempt(taken_over=True),
            "attempt 1: run aaaaaaaa (invocation tick-7) held it and never said what came of it; "
            "it may have been sent",
        ),
        (
            attempt(taken_over=True, run=None, detail="quarantine"),
            "attempt 1: put in doubt: quarantine",
        ),
    ],
)
def test_why_it_is_in_doubt(one: AttemptRecord, words: str) -> None:
    assert explain(seen(open=row(), attempts=(one,))).doubts == (words,)


def test_doubt_about_an_earlier_attempt_outlives_the_delivery() -> None:
    """No word that it came twice: nobody knows, and some providers drop or replace a repeat."""
    later = attempt(DELIVERED, fence=2, at=at(9), closing=True)
    told = explain(seen(closed=closed(Kind.DELIVERED), attempts=(attempt(), later)))
    (doubt,) = told.doubts
    assert doubt.endswith(
        "; it was sent again and delivered: if this one arrived too, it came twice, "
        "unless its provider drops or replaces a repeat"
    )


def test_what_the_provider_was_asked_about_and_had_was_not_sent_again() -> None:
    told = explain(seen(closed=closed(Kind.DELIVERED, "reconciled"), attempts=(attempt(),)))
    (doubt,) = told.doubts
    assert doubt.endswith("; the provider was asked, and has it")
    assert told.timeline[-1].text == "closed as delivered: reconciled"


def test_what_the_provider_was_asked_about_and_had_not_came_once() -> None:
    later = attempt(DELIVERED, fence=2, at=at(9), closing=True, detail=ASKED_NOT_THERE)
    told = explain(seen(closed=closed(Kind.DELIVERED), attempts=(attempt(), later)))
    (doubt,) = told.doubts
    assert doubt.endswith("; the provider was asked before it was sent again, and did not have it")


def test_a_doubt_that_the_later_question_did_not_cover_stays() -> None:
    """What was asked before the second attempt says nothing of the third one's end."""
    asked = attempt(DELIVERED, fence=2, at=at(3), detail=ASKED_NOT_THERE)
    late = attempt(fence=3, at=at(9))
    told = explain(seen(closed=closed(Kind.DELIVERED), attempts=(attempt(), asked, late)))
    assert [("did not have it" in doubt) for doubt in told.doubts] == [True, False]


OUTCOMES = {
    AttemptOutcome.DELIVERED: "delivered",
    AttemptOutcome.REJECTED: "refused for good",
    AttemptOutcome.FAILED: "refused for now",
    AttemptOutcome.NOT_SENT: "not sent (does not count as an attempt)",
    AttemptOutcome.UNCERTAIN: "in doubt: it may have been accepted",
    AttemptOutcome.HELD: "nothing was sent: it is in doubt, and held",
}


@pytest.mark.parametrize("outcome", AttemptOutcome)
def test_every_outcome_has_its_words(outcome: AttemptOutcome) -> None:
    told = explain(seen(open=row(), attempts=(attempt(outcome),)))
    assert told.timeline[-1].text == f"attempt 1: {OUTCOMES[outcome]}"


def test_the_timeline_tells_who_held_it_and_what_came_back_in_order() -> None:
    facts = seen(
        closed=closed(Kind.DELIVERED),
        replay_of=3,
        attempts=(
            attempt(taken_over=True, at=at(4)),
            attempt(
                DELIVERED,
                fence=2,
                run=OTHER,
                invocation=None,
                claimed_at=at(4),
                at=at(9),
                phase=Phase.ANSWERED,
                status=201,
                reference="msg-1",
                took_ms=40,
                closing=True,
            ),
        ),
        evidence=(
            evidence(AttemptOutcome.FAILED, source="late", run=RUN, at=at(5), detail="busy"),
            evidence(DELIVERED, source="operator", fence=0, at=at(10), reference="ticket"),
        ),
        journal=(
            JournalRecord(
                run=RUN, seq=2, at=at(5), claimed=False, renewed=True, lost=True, verdict=None
            ),
            JournalRecord(
                run=RUN,
                seq=3,
                at=at(6),
                claimed=False,
                renewed=False,
                lost=False,
                verdict=Verdict.LATE,
                fence=1,
            ),
            JournalRecord(
                run=OTHER, seq=1, at=at(4), claimed=True, renewed=False, lost=False, verdict=None
            ),
        ),
        operations=(
            OperationRecord(at=at(3), what="redrive", was="dead: rejected", who="ann", why="fixed"),
        ),
    )
    assert [f"{one.at[14:16]} {one.text}" for one in explain(facts).timeline] == [
        "00 enqueued on channel push, a replay of 3",
        "01 attempt 1: claimed by run aaaaaaaa (invocation tick-7)",
        "03 redrive by ann (it was dead: rejected): fixed",
        "04 attempt 1: run aaaaaaaa (invocation tick-7) did not come back; taken over, in doubt",
        "04 attempt 2: claimed by run bbbbbbbb",
        "05 run aaaaaaaa asked to renew its lease and had lost it",
        "05 evidence from the run, too late for its lease about attempt 1: failed: busy",
        "06 run aaaaaaaa spoke too late about attempt 1: what it knew was kept as evidence",
        "09 attempt 2: delivered (status 201, provider's reference msg-1, 40 ms)",
        "09 closed as delivered",
        "10 evidence from an operator: delivered (provider's reference ticket)",
    ]


def test_a_claim_without_an_attempt_yet_is_told_too() -> None:
    told = explain(seen(open=held_row(12.0)))
    assert told.timeline[-1].text == "attempt 1: claimed by run aaaaaaaa (invocation tick-7)"


def late(verdict: Verdict, fence: int = 1) -> JournalRecord:
    return JournalRecord(
        run=RUN,
        seq=3,
        at=at(6),
        claimed=False,
        renewed=False,
        lost=False,
        verdict=verdict,
        fence=fence,
    )


KEPT = evidence(AttemptOutcome.FAILED, source="late", run=RUN)


@pytest.mark.parametrize(
    ("line", "facts", "words"),
    [
        (
            late(Verdict.LATE),
            (KEPT,),
            "spoke too late about attempt 1: what it knew was kept as evidence",
        ),
        (
            late(Verdict.LATE),
            (),
            "spoke too late about attempt 1: it knew nothing that counts as evidence, and changed nothing",
        ),
        (  # of another attempt, of another run, from elsewhere: not what this word left
            late(Verdict.LATE, fence=2),
            (
                KEPT,
                evidence(DELIVERED, fence=2, source="late", run=OTHER),
                evidence(DELIVERED, fence=2),
            ),
            "spoke too late about attempt 2: it knew nothing that counts as evidence, and changed nothing",
        ),
        (
            late(Verdict.UNKNOWN),
            (KEPT,),
            "spoke of attempt 1, which nobody knows: what it knew was kept as evidence",
        ),
        (
            late(Verdict.UNKNOWN),
            (),
            "spoke of attempt 1, which nobody knows: "
            "it knew nothing that counts as evidence, and changed nothing",
        ),
        (late(Verdict.CONFLICT), (), "reported a second delivery: a conflict"),
    ],
)
def test_a_late_word_is_evidence_only_where_it_left_some(
    line: JournalRecord, facts: tuple[EvidenceRecord, ...], words: str
) -> None:
    told = explain(seen(open=row(), journal=(line,), evidence=facts)).timeline
    assert f"run aaaaaaaa {words}" in [moment.text for moment in told]


def turned(minute: int, kind: Kind, was: str, fence: int = 1) -> OperationRecord:
    return OperationRecord(
        at=at(minute), what=f"close as {kind}", was=was, who=None, why="evidence", fence=fence
    )


def test_what_evidence_turned_was_closed_as_something_else_before() -> None:
    facts = seen(
        closed=closed(Kind.DELIVERED, "evidence"),
        attempts=(attempt(at=at(9), closing=True),),
        evidence=(
            evidence(AttemptOutcome.REJECTED, at=at(12)),
            evidence(DELIVERED, source="late", run=RUN, at=at(15)),
        ),
        operations=(
            turned(12, Kind.DEAD, "uncertain: held"),
            turned(15, Kind.DELIVERED, "dead: evidence"),
        ),
    )
    told = explain(facts)
    assert [f"{one.at[14:16]} {one.text}" for one in told.timeline][2:] == [
        "09 attempt 1: in doubt: it may have been accepted",
        "09 closed as uncertain: held",
        "12 evidence from a callback about attempt 1: rejected",
        "12 close as dead (it was uncertain: held): evidence",
        "15 evidence from the run, too late for its lease about attempt 1: delivered",
        "15 close as delivered (it was dead: evidence): evidence",
    ]
    assert told.standing == f"delivered: closed at {at(15)} (evidence)"


def test_what_evidence_turned_in_an_earlier_life_is_told_of_that_life() -> None:
    facts = seen(
        closed=closed(Kind.DELIVERED),
        operations=(
            turned(3, Kind.DEAD, "uncertain: held"),
            OperationRecord(at=at(4), what="redrive", was="dead: evidence", who="ann", why=None),
        ),
    )
    told = explain(facts)
    assert [f"{one.at[14:16]} {one.text}" for one in told.timeline] == [
        "00 enqueued on channel push",
        "03 close as dead (it was uncertain: held): evidence",
        "04 redrive by ann (it was dead: evidence)",
        "09 closed as delivered",
    ]
    assert told.standing == f"delivered: closed at {at(9)}"


def moved(minute: int, what: str, fence: int) -> OperationRecord:
    return OperationRecord(at=at(minute), what=what, was=None, who="ann", why=None, fence=fence)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (seen(open=row(fence=0)), []),
        (seen(open=held_row(12.0)), []),
        (seen(open=row(fence=1)), ["30 by now attempt 1"]),
        (seen(open=row(fence=3)), ["30 by now attempts 1 to 3"]),
        (seen(open=held_row(12.0, fence=3)), ["01 by then attempts 1 to 2"]),
        (seen(closed=closed(Kind.DELIVERED), attempts=(attempt(DELIVERED),)), []),
        (
            seen(open=row(fence=5), attempts=(attempt(fence=2), attempt(fence=3))),
            ["01 by then attempt 1", "30 by now attempts 4 to 5"],
        ),
        # a fence that somebody raised was no claim; what was closed at a fence is told by what opened it again
        (seen(open=row(fence=2), operations=(moved(4, "redrive", 2),)), []),
        (seen(open=row(fence=3), operations=(moved(4, "reopen", 3),)), ["04 by then attempt 1"]),
        (seen(closed=closed(Kind.CANCELLED), operations=(moved(9, "cancel", 1),)), []),
        (
            seen(
                open=row(fence=2),
                operations=(moved(6, "quarantine", 2),),
                attempts=(attempt(fence=2, run=None, claimed_at=at(0), at=at(6)),),
            ),
            ["06 by then attempt 1"],
        ),
        # a word about it raised nothing
        (seen(open=row(fence=1), operations=(moved(4, "resolve", 1),)), ["30 by now attempt 1"]),
        # nobody counts through a counter that was set by hand
        (seen(open=row(fence=2**62)), [f"30 by now attempts 1 to {2**62}"]),
    ],
)
def test_claims_that_were_given_back_are_told_by_the_fences_they_took(
    facts: Inspection, told: list[str]
) -> None:
    unsent = [one for one in explain(facts).timeline if one.text.endswith("given back unsent")]
    said = [f"{one.at[14:16]} {one.text.split(' had been')[0]}" for one in unsent]
    assert said == told


def test_a_channel_that_nobody_can_send_on_is_why_nothing_happens() -> None:
    skipped = channel(skip_reason="env:KEY is missing or empty", skipped_at=at(3))
    told = next_step(seen(channel=skipped, open=row()))
    assert told.startswith(f"nothing until a worker can send on channel push: since {at(3)} ")
    assert "(env:KEY is missing or empty)" in told
