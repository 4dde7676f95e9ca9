"""Claiming, leases, seq, gates and the end of a run."""

import math

import pytest
from msgspec.structs import replace

from fencepost.core.exchange import Facts, Failure, GateWord, Verdict, Want
from fencepost.core.notification import AttemptOutcome, OnUncertain
from fencepost.ports import StoreFailed
from tests.store.bench import (
    Bench,
    Worker,
    Written,
    delivered,
    not_sent,
    release,
    retry,
    uncertain,
)

UNCERTAIN = AttemptOutcome.UNCERTAIN
NOT_SENT = AttemptOutcome.NOT_SENT


class StartContract:
    def test_the_channels_asked_for_are_answered(self, bench: Bench) -> None:
        assert {channel.name for channel in Worker(bench).channels.values()} == {
            "web",
            "post",
            "slow",
        }
        (slow,) = Worker(bench, "slow").channels.values()
        assert slow.rate_per_second == 2.0
        assert slow.on_uncertain is OnUncertain.RESEND
        assert slow.paused_for_seconds == 0.0

    def test_starting_again_is_harmless(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        worker.started()
        assert worker.settle(delivered(held)) == [Verdict.APPLIED]
        assert bench.standing(id).fence == 1

    @pytest.mark.parametrize(
        ("installation", "version", "channel", "sentence"),
        [
            ("other", 1, "web", "FENCEPOST_INSTALLATION"),
            ("test", 0, "web", "minimum_code_version"),
            ("test", 1, "typo", "FENCEPOST_CHANNELS"),
        ],
    )
    def test_what_would_be_a_mistake_is_refused_in_one_sentence(
        self, bench: Bench, installation: str, version: int, channel: str, sentence: str
    ) -> None:
        worker = Worker(bench, start=False)
        with pytest.raises(StoreFailed, match=sentence) as refused:
            worker.started(channel, installation=installation, version=version)
        assert refused.value.failure is Failure.REFUSED
        bench.enqueue()
        channel_id = Worker(bench).channels["web"].id
        assert worker.say(claim=(Want(channel=channel_id, limit=5),)).claimed == ()


class ClaimContract:
    def test_due_rows_by_priority_then_age_up_to_the_limit(self, bench: Bench) -> None:
        (low,) = bench.enqueue(priority=2)
        normal = bench.enqueue(2)
        bench.advance(1)
        (high,) = bench.enqueue(priority=0)
        bench.enqueue(due_in=60)
        worker = Worker(bench)
        assert {claimed.id for claimed in worker.claim(3)} == {high, *normal}
        assert [claimed.id for claimed in worker.claim(3)] == [low]

    def test_rows_that_fail_again_and_again_starve_no_newer_ones(self, bench: Bench) -> None:
        bench.enqueue(30)
        worker = Worker(bench)
        seen: set[int] = set()
        for _ in range(4):  # the old ones fail, each comes back after those that are due now
            worker.say(*(retry(one.held, delay_seconds=1) for one in worker.claim(8)))
        bench.advance(0.5)
        newer = set(bench.enqueue(10))
        bench.advance(2)
        for _ in range(5):
            claimed = worker.claim(8)
            seen |= {one.id for one in claimed}
            worker.say(*(retry(one.held, delay_seconds=1) for one in claimed))
            bench.advance(0.1)
        assert newer <= seen

    def test_live_leases_in_front_hide_no_expired_one(self, bench: Bench) -> None:
        (behind,) = bench.enqueue()
        killed = Worker(bench)
        killed.claim(lease_seconds=5)
        bench.advance(-1)
        bench.enqueue(200)
        bench.advance(1)
        assert len(Worker(bench).claim(200, lease_seconds=900)) == 200
        bench.advance(6)
        assert [one.id for one in Worker(bench).claim(10)] == [behind]

    def test_what_a_claimed_row_brings(self, bench: Bench) -> None:
        (id,) = bench.enqueue(expires_in=100, on_uncertain=OnUncertain.RESEND)
        bench.advance(7)
        claimed = Worker(bench).claim_one()
        assert (claimed.id, claimed.fence, claimed.attempts) == (id, 1, 1)
        assert (claimed.interruptions, claimed.doubt, claimed.evidence) == (0, False, None)
        assert (claimed.first_attempt_age_seconds, claimed.first_digest) == (None, None)
        assert claimed.age_seconds == pytest.approx(7, abs=1e-3)
        assert claimed.expires_in_seconds == pytest.approx(93, abs=1e-3)
        assert claimed.lease_left_seconds == pytest.approx(20, abs=1e-3)
        assert claimed.on_uncertain is OnUncertain.RESEND
        assert Worker(bench).claim() == ()

    def test_every_attempt_has_the_same_idempotency_key(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        first = worker.claim_one()
        worker.settle(retry(first.held))
        assert worker.claim_one().idempotency_key == first.idempotency_key

    def test_what_never_left_leaves_no_digest(self, bench: Bench) -> None:
        """Or other bytes would be refused although nobody has seen the first."""
        bench.enqueue()
        worker = Worker(bench)
        unsent, sent = Facts(digest=b"a" * 16), Facts(digest=b"b" * 16)
        worker.settle(replace(not_sent(worker.claim_one().held), facts=unsent))
        again = worker.claim_one()
        assert again.first_digest is None
        worker.settle(retry(again.held, facts=sent))
        assert worker.claim_one().first_digest == b"b" * 16

    def test_the_first_attempt_that_may_have_been_sent_is_remembered(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        worker.settle(not_sent(worker.claim_one().held))
        bench.advance(5)
        worker.settle(uncertain(worker.claim_one().held, facts=Facts(digest=b"1" * 16)))
        bench.advance(5)
        worker.settle(retry(worker.claim_one().held, facts=Facts(digest=b"2" * 16)))
        bench.advance(5)
        claimed = worker.claim_one()
        assert claimed.first_attempt_age_seconds == pytest.approx(10, abs=1e-3)
        assert claimed.doubt_age_seconds == pytest.approx(10, abs=1e-3)
        assert claimed.first_digest == b"1" * 16
        assert claimed.age_seconds == pytest.approx(15, abs=1e-3)

    def test_how_long_it_is_in_doubt_counts_from_its_latest_attempt_in_doubt(
        self, bench: Bench
    ) -> None:
        """After an hour of failures a doubt is new: a provider's word on it is still to come."""
        (id,) = bench.enqueue()
        worker = Worker(bench)
        claimed = worker.claim_one()
        assert claimed.doubt_age_seconds is None
        worker.settle(uncertain(claimed.held))
        bench.advance(60)
        bench.evidence(id, NOT_SENT, fence=1)
        claimed = worker.claim_one()
        assert (claimed.doubt, claimed.doubt_age_seconds) == (False, None)
        worker.settle(uncertain(claimed.held))
        bench.advance(7)
        claimed = worker.claim_one()
        assert claimed.doubt_age_seconds == pytest.approx(7, abs=1e-3)
        assert claimed.first_attempt_age_seconds == pytest.approx(67, abs=1e-3)

    def test_an_expired_lease_is_taken_over_with_doubt(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        first = Worker(bench).claim_one()
        bench.advance(19.9)
        second = Worker(bench)
        assert second.claim() == ()
        bench.advance(0.2)
        claimed = second.claim_one()
        assert (claimed.id, claimed.fence) == (first.id, 2)
        assert (claimed.attempts, claimed.interruptions, claimed.doubt) == (2, 1, True)
        assert claimed.first_attempt_age_seconds == pytest.approx(20, abs=0.2)
        assert bench.standing(id).ledger == (Written(1, UNCERTAIN, True),)

    def test_a_renewed_lease_is_longer_and_a_lost_one_is_told(self, bench: Bench) -> None:
        bench.enqueue(2)
        worker = Worker(bench)
        kept, lost = worker.claim(lease_seconds=10)
        bench.advance(5)
        assert worker.say(renew=(kept.held,), lease_seconds=10).lost == ()
        bench.advance(6)
        (taken,) = Worker(bench).claim()
        assert taken.id == lost.id
        assert worker.say(renew=(kept.held, lost.held)).lost == (lost.held,)

    def test_no_lease_is_longer_than_the_longest(self, bench: Bench) -> None:
        bench.enqueue()
        claimed = Worker(bench).claim(lease_seconds=200_000)[0]
        assert claimed.lease_left_seconds == pytest.approx(900, abs=1)

    @pytest.mark.parametrize("renewed", [False, True])
    def test_an_overlong_lease_is_a_live_one_and_then_over(
        self, bench: Bench, renewed: bool
    ) -> None:
        """One kept as long as it was asked for would look like one of a clock set back: free for everybody at once."""
        bench.enqueue()
        worker = Worker(bench)
        held = worker.claim(lease_seconds=20 if renewed else 200_000)[0].held
        if renewed:
            assert worker.say(renew=(held,), lease_seconds=200_000).lost == ()
        assert Worker(bench).claim() == ()
        assert not bench.wait(bench.store.has_work())
        bench.advance(901)
        assert bench.wait(bench.store.has_work())
        assert Worker(bench).claim_one().doubt

    def test_a_clock_set_back_hides_no_row(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        bench.advance(86400)
        Worker(bench).claim_one()
        bench.advance(-80000)
        assert bench.wait(bench.store.has_work())
        assert Worker(bench).claim_one().doubt
        assert bench.standing(id).fence == 2

    def test_an_expired_notification_is_handed_out_as_expired(self, bench: Bench) -> None:
        bench.enqueue(expires_in=1)
        bench.advance(5)
        assert Worker(bench).claim_one().expires_in_seconds == pytest.approx(-4, abs=1e-3)

    def test_a_look_from_the_beginning_finds_what_a_hint_passes_by(self, bench: Bench) -> None:
        first = bench.enqueue()
        worker, killed = Worker(bench), Worker(bench)
        killed.claim(1, lease_seconds=10)
        bench.advance(1)
        bench.enqueue(6)
        worker.claim(2)
        bench.advance(11)
        found = worker.say(claim=worker.want(1, hint=False)).claimed
        assert [claimed.id for claimed in found] == first

    def test_after_a_short_claim_the_next_finds_everything(self, bench: Bench) -> None:
        first = bench.enqueue()
        worker, killed = Worker(bench), Worker(bench)
        killed.claim(1, lease_seconds=10)
        bench.advance(1)
        bench.enqueue(2)
        assert len(worker.claim(5)) == 2
        bench.advance(11)
        assert [claimed.id for claimed in worker.claim(5)] == first


class SeqContract:
    def test_the_same_seq_again_brings_the_same_claim(self, bench: Bench) -> None:
        bench.enqueue(6)
        worker = Worker(bench)
        old = worker.claim(3)
        words = [delivered(claimed.held) for claimed in old]
        first = worker.say(*words, claim=worker.want(2))
        again = worker.say(*words, claim=worker.want(2), seq=worker.seq)
        assert first.verdicts == (Verdict.APPLIED,) * 3
        assert again.verdicts == (Verdict.REPEATED,) * 3
        assert {claimed.held for claimed in again.claimed} == {
            claimed.held for claimed in first.claimed
        }
        assert len(worker.claim()) == 1

    def test_fewer_words_under_the_same_seq_still_bring_the_claim(self, bench: Bench) -> None:
        bench.enqueue(4)
        worker = Worker(bench)
        one, two = worker.claim(2)
        first = worker.say(delivered(one.held), delivered(two.held), claim=worker.want())
        for _ in range(2):
            again = worker.say(delivered(one.held), seq=worker.seq)
            assert {claimed.held for claimed in again.claimed} == {
                claimed.held for claimed in first.claimed
            }

    def test_a_turn_that_came_to_nothing_is_a_turn(self, bench: Bench) -> None:
        worker = Worker(bench)
        assert worker.claim() == ()
        bench.enqueue(2)
        assert worker.say(claim=worker.want(), seq=1).claimed == ()
        (one,) = worker.say(claim=worker.want(1), seq=2).claimed
        assert worker.say(claim=worker.want(), seq=1).claimed == ()
        worker.say(seq=3)
        for seq in (2, 3):
            assert worker.say(claim=worker.want(), seq=seq).claimed == ()
        worker.say(delivered(one.held), seq=4)
        assert worker.say(claim=worker.want(), seq=4).claimed == ()
        assert len(worker.say(claim=worker.want(), seq=5).claimed) == 1

    def test_an_older_seq_claims_nothing_and_a_gap_claims(self, bench: Bench) -> None:
        bench.enqueue(3)
        worker = Worker(bench)
        assert len(worker.say(claim=worker.want(1), seq=5).claimed) == 1
        assert worker.say(claim=worker.want(1), seq=4).claimed == ()
        assert len(worker.say(claim=worker.want(1), seq=9).claimed) == 1

    def test_rows_taken_over_since_are_not_handed_out_again(self, bench: Bench) -> None:
        bench.enqueue(5)
        worker = Worker(bench)
        first = worker.claim()
        bench.advance(21)
        taken = {claimed.id for claimed in Worker(bench).claim(2)}
        again = worker.say(claim=worker.want(), seq=worker.seq).claimed
        assert {claimed.id for claimed in again} == {claimed.id for claimed in first} - taken

    def test_words_hold_under_any_seq(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        held = worker.say(claim=worker.want(), seq=7).claimed[0].held
        assert worker.say(delivered(held), seq=3).verdicts == (Verdict.APPLIED,)


class GateContract:
    def gate(self, worker: Worker, pause: float | None, channel: str = "web") -> GateWord:
        known = worker.channels[channel]
        return GateWord(
            channel=known.id, revision=known.revision, pause_seconds=pause, reason="breaker"
        )

    def test_a_paused_channel_gives_nothing_until_it_is_over(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        answer = worker.say(gates=(self.gate(worker, 30),), claim=worker.want())
        gate = answer.gates[worker.channels["web"].id]
        assert answer.claimed == ()
        assert gate.paused_for_seconds == pytest.approx(30, abs=1e-3)
        assert gate.reason == "breaker"
        assert not bench.wait(bench.store.has_work(("web",)))
        bench.advance(31)
        assert bench.wait(bench.store.has_work(("web",)))
        assert len(worker.claim()) == 1

    def test_a_shorter_pause_does_not_shorten_a_longer_one(self, bench: Bench) -> None:
        worker = Worker(bench)
        worker.say(gates=(self.gate(worker, 60),))
        gate = worker.say(gates=(self.gate(worker, 5),)).gates[worker.channels["web"].id]
        assert gate.paused_for_seconds == pytest.approx(60, abs=1e-3)

    def test_a_stale_run_cannot_pause_a_repaired_channel(self, bench: Bench) -> None:
        stale = Worker(bench)
        bench.repair("web")
        gate = stale.say(gates=(self.gate(stale, 60),)).gates[stale.channels["web"].id]
        assert gate.paused_for_seconds == 0.0
        assert gate.revision == stale.channels["web"].revision + 1

    def test_an_ended_run_pauses_nothing(self, bench: Bench) -> None:
        worker = Worker(bench)
        worker.say(last=True)
        worker.say(gates=(self.gate(worker, 60),))
        assert Worker(bench).channels["web"].paused_for_seconds == 0.0

    def test_only_claimed_tokens_are_spent_and_time_brings_new_ones(self, bench: Bench) -> None:
        bench.enqueue(9, channel="slow")
        worker = Worker(bench)
        slow = worker.channels["slow"].id
        assert len(worker.claim(1, channel="slow")) == 1
        answer = worker.say(claim=worker.want(9, channel="slow"))
        assert len(answer.claimed) == 3
        assert answer.gates[slow].token_in_seconds == pytest.approx(0.5, abs=1e-3)
        assert worker.claim(9, channel="slow") == ()
        assert not bench.wait(bench.store.has_work(("slow",)))
        bench.advance(1)
        assert len(worker.claim(9, channel="slow")) == 2

    def test_a_channel_without_a_rate_never_waits_for_tokens(self, bench: Bench) -> None:
        worker = Worker(bench)
        gate = worker.say(claim=worker.want()).gates[worker.channels["web"].id]
        assert gate.token_in_seconds == 0.0
        assert gate.revision == worker.channels["web"].revision

    def test_a_channel_that_is_not_there_is_no_idleness(self, bench: Bench) -> None:
        """A misspelled FENCEPOST_CHANNELS would look like an installation with nothing to do, for ever."""
        with pytest.raises(StoreFailed, match="FENCEPOST_CHANNELS") as refused:
            bench.wait(bench.store.has_work(("web", "typo")))
        assert refused.value.failure is Failure.REFUSED

    def test_has_work_is_what_a_claim_would_find(self, bench: Bench) -> None:
        worker = Worker(bench)
        assert not bench.wait(bench.store.has_work())
        bench.enqueue(due_in=10)
        assert not bench.wait(bench.store.has_work())
        bench.advance(11)
        assert bench.wait(bench.store.has_work())
        assert bench.wait(bench.store.has_work(("web",)))
        assert not bench.wait(bench.store.has_work(("post",)))
        worker.claim()
        assert not bench.wait(bench.store.has_work())
        bench.advance(21)
        assert bench.wait(bench.store.has_work())


class LastContract:
    def test_words_hold_and_an_unheard_claim_is_released(self, bench: Bench) -> None:
        said, unheard = bench.enqueue(2)
        worker = Worker(bench)
        (one,) = worker.claim(1)
        worker.claim(1)
        assert worker.say(delivered(one.held), last=True, seq=worker.seq).verdicts == (
            Verdict.APPLIED,
        )
        standing = bench.standing(unheard)
        assert (standing.leased, standing.attempts, standing.doubt) == (False, 0, False)
        assert standing.ledger == ()
        assert {said, unheard} == {one.id, unheard}

    def test_what_was_heard_and_not_mentioned_is_left_in_doubt(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.claim()
        worker.say(last=True)
        standing = bench.standing(id)
        assert (standing.leased, standing.attempts, standing.doubt) == (False, 1, True)
        assert standing.ledger == (Written(1, UNCERTAIN, True),)

    def test_evidence_of_delivery_outranks_last(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.claim()
        bench.evidence(id, AttemptOutcome.DELIVERED, fence=1)
        worker.say(last=True)
        assert bench.standing(id).kind == "delivered"

    def test_an_ended_run_leaves_evidence_and_gets_nothing(self, bench: Bench) -> None:
        bench.enqueue(2)
        worker = Worker(bench)
        (one,) = worker.claim(1)
        worker.say(last=True)
        answer = worker.say(delivered(one.held), renew=(one.held,), claim=worker.want())
        assert answer.verdicts == (Verdict.LATE,)
        assert (answer.lost, answer.claimed) == ((one.held,), ())
        assert bench.standing(one.id).kind == "delivered"

    def test_an_unknown_run_leaves_evidence_and_gets_nothing(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        claimed = Worker(bench).claim_one()
        unknown = Worker(bench, start=False)
        unknown.channels = Worker(bench).channels
        answer = unknown.say(retry(claimed.held), claim=unknown.want())
        assert answer.verdicts == (Verdict.UNKNOWN,)
        assert answer.claimed == ()
        assert bench.standing(id).leased

    def test_last_said_again_is_repeated(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        worker.say(delivered(held), last=True)
        assert worker.say(delivered(held), last=True, seq=worker.seq).verdicts == (
            Verdict.REPEATED,
        )

    @pytest.mark.parametrize("delay", [math.nan, math.inf, -5.0, 1e300])
    def test_odd_delays_are_bounded(self, bench: Bench, delay: float) -> None:
        bench.enqueue()
        worker = Worker(bench)
        assert worker.settle(release(worker.claim_one().held, delay)) == [Verdict.APPLIED]
        bench.advance(2592001)
        assert len(worker.claim()) == 1
