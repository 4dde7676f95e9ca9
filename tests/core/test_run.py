"""The run as a value: every event against every state that matters."""

import pytest

from fencepost.core.asking import ASKED_NOT_THERE
from fencepost.core.budget import Timing
from fencepost.core.exchange import Failure, GateAnswer, Verdict
from fencepost.core.fact import BadRowParked, ChannelSkipped, RowsClaimed, WordSettled
from fencepost.core.notification import AttemptOutcome, Claimed, Held, Kind, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.step import Finish, Say, Started
from tests.core.driver import Table, settled
from tests.core.rows import ASKABLE, KEYED, NOTHING, a_channel, a_claimed

ONE, TWO, THREE = (a_claimed(n) for n in (1, 2, 3))
DOUBTFUL = a_claimed(1, 2, doubt=True, attempts=2, interruptions=1, first_attempt_age_seconds=25.0)
LONELY = a_claimed(9, 3, interruptions=2, doubt=True, attempts=3, first_attempt_age_seconds=50.0)


# --- one whole life


def test_claim_send_settle_claim_again_and_end() -> None:
    table = Table(a_channel(slots=2))
    assert (table.said.seq, table.said.claim[0].limit, table.said.claim[0].hint) == (1, 2, False)
    table.answer(ONE, TWO)
    assert table.sent == [ONE.held, TWO.held]
    table.reply(ONE.held)
    second = table.until_said()
    assert (second.seq, second.claim[0].limit, second.claim[0].hint) == (2, 1, True)
    assert settled(second)[ONE.held].kind is Kind.DELIVERED
    table.answer().reply(TWO.held)
    while not table.finished:
        table.until_said()
        table.answer()
    assert table.finished == Finish(())
    assert table.run.wake_at() is None
    verdicts = [fact.verdict for fact in table.facts if isinstance(fact, WordSettled)]
    assert verdicts == [Verdict.APPLIED, Verdict.APPLIED]
    assert any(isinstance(fact, RowsClaimed) and fact.count == 2 for fact in table.facts)


def test_words_are_said_by_id_whatever_order_the_answers_came_in() -> None:
    table = Table(a_channel(slots=3)).answer(THREE, ONE, TWO)
    for held in (TWO.held, THREE.held, ONE.held):
        table.reply(held, after=0.001)
    assert list(settled(table.until_said())) == [ONE.held, TWO.held, THREE.held]


def test_nothing_due_ends_with_the_second_exchange() -> None:
    table = Table().answer()
    assert table.until_said().last
    assert table.answer().finished == Finish(())


@pytest.mark.parametrize("left", [0.0, -5.0, 1.0, 11.9])
def test_too_little_time_claims_nothing(left: float) -> None:
    table = Table(hard_end=left)
    assert not any(say.exchange.claim for say in table.of(Say))
    assert table.finished or table.said.last


def test_no_usable_channel_ends_at_once_and_tells_why() -> None:
    table = Table(start=False)
    table.feed(Started((a_channel(),), {}, {a_channel().id: "env:NAME is not set"}))
    assert table.said.last
    assert table.facts == [ChannelSkipped(channel=a_channel().id, reason="env:NAME is not set")]


def test_replies_within_the_linger_share_an_exchange() -> None:
    table = Table().answer(ONE, TWO, THREE)
    table.reply(ONE.held).reply(TWO.held, after=0.005)
    assert len(table.until_said().settle) == 2


def test_one_exchange_at_a_time() -> None:
    table = Table().answer(ONE, TWO).reply(ONE.held)
    table.until_said()
    assert table.reply(TWO.held).of(Say) == []
    assert table.answer().of(Say) == []  # the linger comes first
    assert [word.id for word in table.until_said().settle] == [TWO.id]


def test_enough_words_do_not_wait_for_the_linger() -> None:
    """Ten words are a good exchange: the slots they left are filled at once."""
    rows = [a_claimed(n) for n in range(1, 31)]
    table = Table(a_channel(slots=30)).answer(*rows)
    for row in rows[:9]:
        assert table.reply(row.held, after=0.0001).of(Say) == []
    (said,) = table.reply(rows[9].held, after=0.0001).of(Say)
    assert len(said.exchange.settle) == 10
    assert said.exchange.claim[0].limit == 10


def test_what_is_enough_grows_with_what_is_held() -> None:
    """A thousand in flight need no exchange for every ten: a tenth of them share one."""
    rows = [a_claimed(n) for n in range(1, 401)]
    table = Table(a_channel(slots=400)).answer(*rows)
    for row in rows[:39]:
        assert table.reply(row.held, after=0.0001).of(Say) == []
    assert len(table.reply(rows[39].held, after=0.0001).of(Say)) == 1


# --- slots and gates


def test_only_free_slots_are_asked_for() -> None:
    table = Table(a_channel(slots=2)).answer(ONE, TWO)
    assert table.reply(ONE.held).until_said().claim[0].limit == 1


def test_every_twentieth_claim_looks_from_the_start() -> None:
    table = Table(a_channel(slots=1))
    hints = []
    for n in range(1, 42):
        hints.append(table.until_said().claim[0].hint)
        table.answer(a_claimed(n)).reply(a_claimed(n).held, after=0.06)
    assert [n for n, hint in enumerate(hints) if not hint] == [0, 20, 40]


def test_a_throttle_closes_the_gate_at_once_and_tells_the_database() -> None:
    table = Table(a_channel(slots=3)).answer(ONE)
    said = table.reply(ONE.held, Throttled("429", 30.0)).until_said()
    assert said.claim == ()
    assert said.gates[0].pause_seconds == pytest.approx(33.0, abs=0.1)
    assert said.gates[0].revision == 3


def test_rows_that_arrive_behind_a_closed_gate_go_back_for_as_long() -> None:
    table = Table(a_channel(slots=2)).answer(ONE)
    table.reply(ONE.held).until_said()
    table.answer(TWO)
    table.until_said()  # it claims while the 429 comes back
    table.reply(TWO.held, Throttled("429", 30.0))
    table.answer(THREE)
    assert table.sent == []
    word = settled(table.until_said())[THREE.held]
    assert (word.outcome, word.kind) == (None, None)
    assert word.delay_seconds == pytest.approx(33.0, abs=0.2)


def test_a_gate_that_opens_in_time_is_waited_for_without_spinning() -> None:
    token = GateAnswer(revision=3, paused_for_seconds=0, reason=None, token_in_seconds=5.0)
    table = Table().answer(gate=token)
    assert table.of(Say) == []
    assert table.run.wake_at() == pytest.approx(5.01)
    assert table.until_said().claim


def test_a_gate_that_opens_too_late_is_not_waited_for() -> None:
    paused = GateAnswer(revision=3, paused_for_seconds=500, reason="x", token_in_seconds=0)
    assert Table().answer(gate=paused).until_said().last


def test_a_credential_failure_stops_its_channel_and_no_other() -> None:
    one, two = a_channel(1), a_channel(2)
    table = Table(one, two).answer(ONE, a_claimed(2, channel=two.id))
    said = table.reply(ONE.held, CredentialFailure("401")).until_said()
    assert {want.channel for want in said.claim} == {two.id}
    assert settled(said)[ONE.held].outcome is AttemptOutcome.NOT_SENT


def test_an_operators_change_does_not_reopen_what_this_run_cannot_send() -> None:
    table = Table(a_channel(slots=2)).answer(ONE)
    table.reply(ONE.held, CredentialFailure("401")).until_said()
    newer = GateAnswer(revision=4, paused_for_seconds=0, reason=None, token_in_seconds=0)
    assert table.answer(gate=newer).until_said().last


def test_a_channel_given_back_to_is_not_asked_in_the_same_call() -> None:
    table = Table(a_channel(slots=2))
    table.answer(a_claimed(1, lease_left_seconds=11.0))
    assert table.sent == []
    said = table.until_said()
    assert settled(said)[ONE.held].reason == "released"
    assert said.claim == ()


# --- budget


def test_no_send_without_lease_counted_from_when_the_claim_was_said() -> None:
    assert Table().answer(a_claimed(1, lease_left_seconds=12.5), after=0.4).sent == [ONE.held]
    assert Table().answer(a_claimed(1, lease_left_seconds=12.5), after=0.6).sent == []


def test_rows_that_come_too_late_go_back() -> None:
    table = Table(hard_end=20.0).answer(ONE, after=8.5)
    assert table.sent == []
    assert table.until_said().last
    assert settled(table.said)[ONE.held].outcome is None


def test_after_stop_claiming_nothing_is_claimed_and_the_flying_end() -> None:
    table = Table(a_channel(slots=2), hard_end=20.0).answer(ONE, TWO, after=7.9)
    said = table.reply(ONE.held, after=0.5).until_said()
    assert said.claim == ()
    assert not said.last
    table.answer().reply(TWO.held)
    assert table.until_said().last


def test_at_hard_stop_what_flies_is_cancelled_and_settled_by_its_phase() -> None:
    table = Table(hard_end=20.0).answer(ONE, after=7.9)
    while table.now < 18.0:
        table.wake()
    assert table.cancelled == [ONE.held]
    table.reply(ONE.held, Uncertain("stopped"))
    assert table.said.last
    assert settled(table.said)[ONE.held].outcome is AttemptOutcome.UNCERTAIN
    assert table.answer().finished == Finish(())


def test_the_lease_asked_for_never_outlives_the_end_by_more_than_the_margin() -> None:
    assert Table(hard_end=15.0).said.lease_seconds == 17.0
    assert Table(hard_end=900.0).said.lease_seconds == 20.0


def test_a_run_that_cannot_speak_finishes_in_time_with_what_it_knows() -> None:
    table = Table(hard_end=20.0).answer(ONE).reply(ONE.held)
    for _ in range(200):
        if table.finished:
            break
        table.fail(Failure.AWAY) if table.of(Say) else table.wake()
    assert table.finished is not None
    assert table.now < 20.0
    assert [(word.held, word.outcome) for word in table.finished.unsaid] == [
        (ONE.held, "delivered")
    ]


def test_what_finds_no_database_says_too_that_a_recipient_is_gone() -> None:
    table = Table(hard_end=20.0).answer(ONE, TWO)
    table.reply(ONE.held, Unregistered("410")).reply(TWO.held, Rejected("400"))
    while not table.finished:
        table.fail(Failure.AWAY) if table.of(Say) else table.wake()
    unsaid = table.finished.unsaid
    assert {(word.held, word.outcome, word.gone) for word in unsaid} == {
        (ONE.held, "rejected", True),
        (TWO.held, "rejected", False),
    }


# --- failed exchanges


@pytest.mark.parametrize("failure", [Failure.UNKNOWN, Failure.RETRY])
def test_the_same_words_under_the_same_seq(failure: Failure) -> None:
    table = Table(a_channel(slots=3)).answer(ONE, TWO).reply(ONE.held)
    first = table.until_said()
    table.reply(TWO.held).fail(failure)
    again = table.until_said()
    assert (again.seq, again.settle, again.claim) == (first.seq, first.settle, first.claim)
    table.answer(verdicts=[Verdict.REPEATED])
    assert table.until_said().seq == first.seq + 1


def test_repeats_wait_longer_each_time() -> None:
    table, gaps = Table(), []
    for _ in range(6):
        table.fail(Failure.UNKNOWN)
        before = table.now
        table.until_said()
        gaps.append(table.now - before)
    assert gaps == sorted(gaps)
    assert 0.0 < gaps[0] < 0.06
    assert gaps[-1] <= 1.0


@pytest.mark.parametrize("failure", [Failure.AWAY, Failure.REFUSED])
def test_while_the_database_is_away_sends_go_on_and_nothing_is_claimed(failure: Failure) -> None:
    table = Table(a_channel(slots=2)).answer(ONE, TWO).reply(ONE.held)
    seq = table.until_said().seq
    table.fail(failure)
    assert table.cancelled == []
    said = table.reply(TWO.held).until_said()
    assert (said.seq, said.claim, len(said.settle)) == (seq, (), 2)
    table.answer()
    if failure is Failure.REFUSED:
        assert table.finished == Finish(
            (), refused=True
        )  # it never will be: those were the last words
    else:
        assert table.until_said().claim  # it is back


def test_a_refused_run_with_nothing_to_say_ends() -> None:
    assert Table().fail(Failure.REFUSED).finished == Finish((), refused=True)


def test_an_unheard_claim_is_released_by_the_last_words_under_its_seq() -> None:
    table = Table(hard_end=13.0)
    seq = table.said.seq
    table.fail(Failure.UNKNOWN, after=1.5)
    last = table.until_said()
    assert (last.last, last.seq, last.claim) == (True, seq, ())


# --- one bad row


def test_a_bad_row_is_found_and_parked_and_the_others_are_settled() -> None:
    rows = [a_claimed(n) for n in range(1, 9)]
    bad = rows[5].held
    table = Table(a_channel(slots=8)).answer(*rows)
    for row in rows:
        table.reply(row.held, Failed("bad\0body"), after=0.001)
    heard: dict[Held, Kind | None] = {}
    for _ in range(60):
        said = table.until_said()
        word = settled(said).get(bad)
        if said.last and not said.settle:
            break
        if word is not None and word.reason != "bad_row":
            table.fail(Failure.DATA)
        else:
            heard.update({word.held: word.kind for word in said.settle})
            table.answer()
    assert set(heard) == {row.held for row in rows}
    assert heard[bad] is Kind.DEAD
    assert [fact.held for fact in table.facts if isinstance(fact, BadRowParked)] == [bad]


def test_details_alone_are_emptied_before_anybody_is_parked() -> None:
    table = Table(a_channel(slots=2)).answer(ONE, TWO)
    table.reply(ONE.held, Failed("bad")).reply(TWO.held, after=0.001)
    seen = []
    for _ in range(3):
        said = table.until_said()
        seen.append((bool(said.claim), settled(said)[ONE.held].facts.detail))
        table.fail(Failure.DATA)
    assert seen[1:] == [(False, "bad"), (False, None)] or seen[0] == (False, "bad")
    assert not any(isinstance(fact, BadRowParked) for fact in table.facts)


def test_a_bad_row_that_may_have_been_delivered_is_parked_as_uncertain() -> None:
    table = Table(a_channel(slots=1)).answer(ONE).reply(ONE.held)
    for _ in range(10):
        word = settled(table.until_said())[ONE.held]
        if word.reason == "bad_row":
            break
        table.fail(Failure.DATA)
    assert (word.kind, word.outcome) == (Kind.UNCERTAIN, AttemptOutcome.UNCERTAIN)
    table.answer()
    table.until_said()
    table.answer()
    while table.finished is None:
        table.until_said()
        table.answer()
    assert [(word.held, word.outcome) for word in table.finished.unsaid] == [
        (ONE.held, "delivered")
    ]


def test_a_channel_whose_claim_the_database_refuses_stops_no_other() -> None:
    one, two = a_channel(1), a_channel(2)
    table = Table(one, two)
    skipped = None
    for _ in range(10):
        said = table.until_said()
        if said.last:
            break
        if any(want.channel == one.id for want in said.claim):
            table.fail(Failure.DATA)
        else:
            table.answer()
        skipped = next((f for f in table.facts if isinstance(f, ChannelSkipped)), None)
    assert skipped is not None
    assert skipped.channel == one.id
    assert said.last


# --- leases


def test_a_long_send_is_renewed_at_half_its_lease_and_not_before() -> None:
    table = Table(timing=Timing(lease_seconds=14.0)).answer(a_claimed(1, lease_left_seconds=14.0))
    said = table.until_said()
    while not said.renew:
        table.answer()
        said = table.until_said()
    assert said.renew == (ONE.held,)
    assert table.now == pytest.approx(7.01, abs=0.05)


def test_a_renewed_lease_counts_from_when_the_renewal_was_said() -> None:
    """Its answer may have been under way for long: the database began to count before that."""
    table = Table(timing=Timing(lease_seconds=14.0)).answer(a_claimed(1, lease_left_seconds=14.0))
    while not table.until_said().renew:
        table.answer()
    said_at = table.now
    table.answer(after=4.0)
    while not table.until_said().renew:
        table.answer()
    assert table.now == pytest.approx(said_at + 7.0, abs=0.05)


def test_what_was_lost_while_it_was_asked_about_is_not_sent() -> None:
    reconciling = a_channel(on_uncertain=OnUncertain.RECONCILE)
    table = Table(reconciling, facility=ASKABLE, timing=Timing(lease_seconds=30.0))
    table.answer(a_claimed(1, 2, doubt=True, lease_left_seconds=30.0))
    (held,) = table.asked
    while not table.until_said().renew:
        table.answer()
    table.answer(lost=(held,))
    assert table.cancelled == [held]
    assert table.ask_answered(held, NotSent("never seen")).sent == []
    word = settled(table.until_said())[held]
    assert (word.outcome, word.kind) == (None, None)


def asking(*others: Claimed) -> Table:
    """A run that asks about a row in doubt, and works on others."""
    table = Table(a_channel(on_uncertain=OnUncertain.RECONCILE), facility=ASKABLE)
    table.answer(DOUBTFUL, *others)
    assert table.asked == [DOUBTFUL.held]
    return table


def test_what_this_run_took_over_anew_while_it_asked_is_not_sent_at_the_old_fence() -> None:
    table = asking()
    table.until_said()
    table.answer(a_claimed(1, 3, doubt=True, attempts=3, interruptions=1))
    assert table.ask_answered(DOUBTFUL.held, NotSent("never seen")).sent == []
    assert {held.fence for held in settled(table.until_said())} == {2, 3}


def test_what_is_sent_after_its_provider_was_asked_says_so_once_delivered() -> None:
    table = asking().ask_answered(DOUBTFUL.held, NotSent("never seen"))
    assert table.sent == [DOUBTFUL.held]
    word = settled(table.reply(DOUBTFUL.held).until_said())[DOUBTFUL.held]
    assert (word.kind, word.facts.detail) == (Kind.DELIVERED, ASKED_NOT_THERE)


def test_what_is_sent_without_a_question_says_nothing_of_one() -> None:
    word = settled(Table().answer(ONE).reply(ONE.held).until_said())[ONE.held]
    assert word.facts.detail is None


def test_a_question_that_is_not_answered_is_told_and_the_row_is_open_again() -> None:
    table = asking().ask_answered(DOUBTFUL.held, Uncertain("cut off"))
    word = settled(table.until_said())[DOUBTFUL.held]
    assert (word.kind, word.outcome) == (None, AttemptOutcome.NOT_SENT)
    assert (word.reason, word.facts.detail) == ("no_answer", "cut off")


def test_what_was_asked_about_waits_where_its_channel_was_paused_meanwhile() -> None:
    table = asking(TWO).reply(TWO.held, CredentialFailure("the key is wrong"))
    assert table.ask_answered(DOUBTFUL.held, NotSent("never seen")).sent == []
    word = settled(table.until_said())[DOUBTFUL.held]
    assert (word.outcome, word.kind) == (None, None)
    assert word.delay_seconds > 60.0


def test_rows_it_has_not_heard_of_keep_a_refused_run_until_they_are_released() -> None:
    table = Table().fail(Failure.UNKNOWN)
    table.until_said()
    assert table.fail(Failure.REFUSED).finished is None
    said = table.until_said()
    assert (said.seq, said.last) == (1, True)


def test_a_lost_lease_stops_the_work_and_the_late_reply_is_said() -> None:
    table = Table(timing=Timing(lease_seconds=14.0)).answer(a_claimed(1, lease_left_seconds=14.0))
    while not table.until_said().renew:
        table.answer()
    table.answer(lost=(ONE.held,))
    assert table.cancelled == [ONE.held]
    said = table.reply(ONE.held).until_said()
    assert settled(said)[ONE.held].outcome is AttemptOutcome.DELIVERED


# --- its own row again


def test_a_run_that_takes_over_its_own_row_never_sends_it_twice() -> None:
    table = Table(a_channel(slots=3)).answer(ONE, TWO).reply(TWO.held)
    table.until_said()
    table.answer(DOUBTFUL)
    assert table.sent == []
    words = settled(table.reply(ONE.held).until_said())
    assert words[ONE.held].outcome is AttemptOutcome.DELIVERED
    newer = words[DOUBTFUL.held]
    assert (newer.kind, newer.outcome, newer.reason) == (Kind.DELIVERED, None, "already_delivered")


@pytest.mark.parametrize(
    ("outcome", "kind", "told"),
    [
        (Failed("503"), None, None),
        (NotSent("dns"), None, None),
        (Uncertain("reset"), Kind.UNCERTAIN, AttemptOutcome.HELD),
    ],
)
def test_what_the_older_send_came_to_settles_the_newer_fence(
    outcome: Failed | NotSent | Uncertain, kind: Kind | None, told: AttemptOutcome | None
) -> None:
    table = Table(a_channel(slots=3, on_uncertain=OnUncertain.HOLD), facility=NOTHING)
    table.answer(ONE, TWO).reply(TWO.held)
    table.until_said()
    table.answer(DOUBTFUL)
    word = settled(table.reply(ONE.held, outcome).until_said())[DOUBTFUL.held]
    assert (word.kind, word.outcome) == (kind, told)


def test_a_reply_not_yet_said_settles_the_newer_fence_too() -> None:
    table = Table(a_channel(slots=3)).answer(ONE, TWO).reply(TWO.held)
    table.until_said()
    table.reply(ONE.held)  # while the exchange that takes the row over is under way
    table.answer(DOUBTFUL)
    assert table.sent == []
    words = settled(table.until_said())
    assert words[DOUBTFUL.held].kind is Kind.DELIVERED
    assert set(words) == {ONE.held, DOUBTFUL.held}


# --- doubt, evidence, questions


def test_what_is_known_to_be_delivered_is_closed_unsent() -> None:
    known = a_claimed(1, 2, doubt=True, evidence=AttemptOutcome.DELIVERED)
    table = Table().answer(known)
    assert table.sent == []
    assert settled(table.until_said())[known.held].reason == "already_delivered"


def test_a_row_in_doubt_is_held_by_policy() -> None:
    table = Table(a_channel(on_uncertain=OnUncertain.HOLD), facility=NOTHING).answer(DOUBTFUL)
    assert table.sent == []
    word = settled(table.until_said())[DOUBTFUL.held]
    assert (word.outcome, word.kind) == (AttemptOutcome.HELD, Kind.UNCERTAIN)


def test_a_row_in_doubt_is_sent_again_inside_the_window() -> None:
    assert Table(facility=KEYED).answer(DOUBTFUL).sent == [DOUBTFUL.held]


@pytest.mark.parametrize(
    ("outcome", "kind", "sends"),
    [
        (Delivered(), Kind.DELIVERED, False),
        (Failed("never seen"), None, True),
        (None, None, False),
        (Uncertain("?"), None, False),
    ],
)
def test_a_question_decides(
    outcome: Delivered | Failed | Uncertain | None, kind: Kind | None, sends: bool
) -> None:
    table = Table(a_channel(on_uncertain=OnUncertain.RECONCILE), facility=ASKABLE)
    table.answer(DOUBTFUL)
    assert (table.sent, table.asked) == ([], [DOUBTFUL.held])
    table.ask_answered(DOUBTFUL.held, outcome)
    assert table.sent == ([DOUBTFUL.held] if sends else [])
    if not sends:
        word = settled(table.until_said())[DOUBTFUL.held]
        assert (word.kind, word.outcome) == (kind, None if kind else AttemptOutcome.NOT_SENT)
        assert kind or word.delay_seconds > 0


# --- rows that are sent alone


def test_a_row_interrupted_twice_waits_until_it_is_alone_and_claims_wait_for_it() -> None:
    table = Table(a_channel(slots=4)).answer(ONE, LONELY)
    assert table.sent == [ONE.held]
    said = table.reply(ONE.held).until_said()
    assert said.claim == ()
    assert table.sent == []
    table.answer()  # now nothing is unsaid either
    assert table.sent == [LONELY.held]
    said = table.reply(LONELY.held).until_said()
    assert said.claim
    assert settled(said)[LONELY.held].kind is Kind.DELIVERED


def test_others_like_it_go_back_before_it_is_sent() -> None:
    others = [
        a_claimed(n, 3, interruptions=2, doubt=True, first_attempt_age_seconds=1.0)
        for n in (20, 21)
    ]
    table = Table(a_channel(slots=4)).answer(LONELY, *others)
    assert table.sent == []
    words = settled(table.until_said())
    assert {word.id for word in words.values()} == {20, 21}
    assert all(word.kind is None and word.delay_seconds > 0 for word in words.values())
    assert table.answer().sent == [LONELY.held]


def test_one_that_waits_too_long_goes_back() -> None:
    table = Table(a_channel(slots=4), hard_end=14.0).answer(ONE, LONELY)
    for _ in range(20):
        if table.now >= 2.0:
            break
        table.wake()
    said = table.until_said()
    assert settled(said)[LONELY.held].reason == "released"


def test_events_after_the_end_change_nothing() -> None:
    table = Table().answer()
    table.until_said()
    table.answer()
    assert table.reply(ONE.held).commands == []
