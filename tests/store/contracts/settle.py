"""Settling: fences, refunds, doubt, late words and conflicts."""

from collections.abc import Callable

import pytest

from fencepost.core.exchange import Verdict, Word
from fencepost.core.notification import AttemptOutcome, Held, Kind
from tests.store.bench import (
    Bench,
    Said,
    Worker,
    Written,
    dead,
    delivered,
    hold,
    not_sent,
    release,
    retry,
    uncertain,
    word,
)

DELIVERED = AttemptOutcome.DELIVERED
FAILED = AttemptOutcome.FAILED
NOT_SENT = AttemptOutcome.NOT_SENT
REJECTED = AttemptOutcome.REJECTED
UNCERTAIN = AttemptOutcome.UNCERTAIN
HELD = AttemptOutcome.HELD

ALL_WORDS: list[Callable[[Held], Word]] = [
    delivered,
    dead,
    retry,
    not_sent,
    uncertain,
    hold,
    release,
]


class SettleContract:
    def test_each_kind_of_word(self, bench: Bench) -> None:
        bench.enqueue(8)
        worker = Worker(bench)
        held = [claimed.held for claimed in worker.claim()]
        words = [make(one) for make, one in zip(ALL_WORDS, held, strict=False)]
        words.append(word(held[7], None, Kind.EXPIRED, reason="expired"))
        assert worker.settle(*words) == [Verdict.APPLIED] * 8
        standings = [bench.standing(one.id) for one in held]
        assert [standing.kind for standing in standings] == [
            Kind.DELIVERED, Kind.DEAD, None, None, None, Kind.UNCERTAIN, None, Kind.EXPIRED,
        ]  # fmt: skip
        assert [standing.ledger for standing in standings] == [
            (Written(1, DELIVERED),), (Written(1, REJECTED),), (Written(1, FAILED),), (Written(1, NOT_SENT),),
            (Written(1, UNCERTAIN),), (Written(1, HELD),), (), (),
        ]  # fmt: skip
        assert [standing.attempts for standing in standings] == [1, 1, 1, 0, 1, 1, 0, 0]
        assert [standing.doubt for standing in standings[2:7]] == [False, False, True, False, False]
        assert not any(standing.leased for standing in standings)
        assert standings[1].reason == "rejected"
        assert bench.conserved()

    def test_every_word_said_again_is_repeated(self, bench: Bench) -> None:
        bench.enqueue(7)
        worker = Worker(bench)
        held = [claimed.held for claimed in worker.claim()]
        words = [make(one) for make, one in zip(ALL_WORDS, held, strict=True)]
        worker.settle(*words)
        before = [bench.standing(one.id) for one in held]
        assert worker.settle(*words) == [Verdict.REPEATED] * 7
        assert [bench.standing(one.id) for one in held] == before

    def test_a_delay_is_waited_and_a_release_keeps_its_place(self, bench: Bench) -> None:
        bench.enqueue(3)
        worker = Worker(bench)
        one, two, three = worker.claim()
        worker.settle(retry(one.held, 30), not_sent(two.held, 10), release(three.held))
        assert [claimed.id for claimed in worker.claim()] == [three.id]
        bench.advance(11)
        assert [claimed.id for claimed in worker.claim()] == [two.id]
        bench.advance(20)
        assert one.id in [claimed.id for claimed in worker.claim()]

    def test_an_expired_lease_that_nobody_took_over_still_settles(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.advance(500)
        assert worker.settle(delivered(held)) == [Verdict.APPLIED]

    @pytest.mark.parametrize("make", ALL_WORDS)
    def test_a_stale_word_changes_nothing(self, bench: Bench, make: Callable[[Held], Word]) -> None:
        (id,) = bench.enqueue()
        first, second = Worker(bench), Worker(bench)
        old = first.claim_one().held
        bench.advance(21)
        new = second.claim_one().held
        before = bench.standing(id)
        assert first.settle(make(old)) == [Verdict.LATE]
        assert first.settle(make(old)) == [Verdict.LATE]
        assert first.say(renew=(old,)).lost == (old,)
        after = bench.standing(id)
        assert (after.kind, after.fence, after.leased) == (None, 2, True)
        assert (after.attempts, after.ledger) == (before.attempts, before.ledger)
        assert len(after.evidence) <= 1
        assert second.say(renew=(new,)).lost == ()

    @pytest.mark.parametrize("make", ALL_WORDS)
    def test_the_right_fence_of_another_run_changes_nothing(
        self, bench: Bench, make: Callable[[Held], Word]
    ) -> None:
        (id,) = bench.enqueue()
        owner, other = Worker(bench), Worker(bench)
        held = owner.claim_one().held
        verdicts = other.settle(make(held))
        assert verdicts == [Verdict.REPEATED if make is release else Verdict.UNKNOWN]
        assert other.say(renew=(held,)).lost == (held,)
        standing = bench.standing(id)
        assert (standing.kind, standing.leased, standing.ledger) == (None, True, ())
        assert owner.say(renew=(held,)).lost == ()

    @pytest.mark.parametrize("make", ALL_WORDS)
    def test_an_old_fence_of_the_same_run_changes_nothing(
        self, bench: Bench, make: Callable[[Held], Word]
    ) -> None:
        """A run that took over its own row stands at the new fence; its old word is late."""
        (id,) = bench.enqueue()
        worker = Worker(bench)
        old = worker.claim_one().held
        bench.advance(21)
        new = worker.claim_one().held
        assert worker.settle(make(old)) == [Verdict.LATE]
        standing = bench.standing(id)
        assert (standing.kind, standing.fence, standing.leased) == (None, 2, True)
        assert standing.ledger == (Written(1, UNCERTAIN, True),)
        assert worker.say(renew=(old, new)).lost == (old,)

    def test_a_late_word_is_written_down_once(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        first, second = Worker(bench), Worker(bench)
        old = first.claim_one().held
        bench.advance(21)
        new = second.claim_one().held
        for _ in range(3):
            first.settle(delivered(old))
        assert bench.standing(id).evidence == (Said(1, DELIVERED),)
        assert second.settle(retry(new)) == [Verdict.APPLIED]
        assert bench.standing(id).kind is Kind.DELIVERED

    def test_a_release_that_came_too_late_says_it_was_not_sent(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        first, second = Worker(bench), Worker(bench)
        old = first.claim_one().held
        bench.advance(21)
        second.claim_one()
        assert bench.standing(id).doubt
        first.settle(release(old))
        assert not bench.standing(id).doubt
        assert bench.standing(id).evidence == (Said(1, NOT_SENT),)

    def test_one_id_twice_in_a_batch(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        assert worker.settle(retry(held), retry(held)) == [Verdict.APPLIED, Verdict.REPEATED]

    def test_words_about_what_does_not_exist_sink_nothing(self, bench: Bench) -> None:
        bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        stranger = held._replace(id=type(held.id)(held.id + 1000))
        assert worker.settle(delivered(stranger), delivered(held)) == [
            Verdict.UNKNOWN,
            Verdict.APPLIED,
        ]


class DoubtContract:
    def test_doubt_outlives_release_defer_and_retry(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(uncertain(worker.claim_one().held))
        for make in (release, not_sent, retry, release):
            claimed = worker.claim_one()
            assert claimed.doubt
            worker.settle(make(claimed.held))
        assert bench.standing(id).doubt

    def test_evidence_that_came_first_spares_the_doubt(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.evidence(id, FAILED, fence=1)
        worker.settle(uncertain(held))
        assert not bench.standing(id).doubt

    def test_a_hold_whose_doubt_was_cleared_meanwhile_opens_again(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(uncertain(worker.claim_one().held))
        claimed = worker.claim_one()
        bench.evidence(id, NOT_SENT, fence=1)
        assert worker.settle(hold(claimed.held)) == [Verdict.APPLIED]
        standing = bench.standing(id)
        assert (standing.kind, standing.doubt, standing.fence) == (None, False, 3)
        assert standing.ledger == (Written(1, UNCERTAIN), Written(2, HELD))

    def test_interruptions_are_counted_apart(self, bench: Bench) -> None:
        bench.enqueue()
        for _ in range(3):
            Worker(bench).claim_one()
            bench.advance(21)
        claimed = Worker(bench).claim_one()
        assert (claimed.attempts, claimed.interruptions) == (4, 3)

    def test_a_second_delivered_is_a_conflict_and_sinks_nothing(self, bench: Bench) -> None:
        bench.enqueue(3)
        first, second = Worker(bench), Worker(bench)
        old = [claimed.held for claimed in first.claim()]
        bench.advance(21)
        new = [claimed.held for claimed in second.claim()]
        twice = new[1].id
        late = next(held for held in old if held.id == twice)
        assert first.settle(delivered(late)) == [Verdict.LATE]
        verdicts = second.settle(*(delivered(held) for held in new))
        assert verdicts == [Verdict.APPLIED, Verdict.CONFLICT, Verdict.APPLIED]
        assert bench.standing(twice).kind is Kind.DELIVERED
        assert second.settle(delivered(new[1])) == [Verdict.REPEATED]

    def test_a_late_delivered_after_the_second_attempt_was_too(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        first, second = Worker(bench), Worker(bench)
        old = first.claim_one().held
        bench.advance(21)
        second.settle(delivered(second.claim_one().held))
        assert first.settle(delivered(old)) == [Verdict.CONFLICT]
        assert bench.standing(id).evidence == (Said(1, DELIVERED),)
        assert bench.standing(id).ledger == (Written(1, UNCERTAIN, True), Written(2, DELIVERED))
