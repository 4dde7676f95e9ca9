"""Evidence, and the words of operators."""

from collections.abc import Callable

import pytest

from fencepost.core.exchange import Facts, Verdict, Word
from fencepost.core.notification import AttemptOutcome, Held, Kind, NotificationId, OnUncertain
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


def held_row(bench: Bench, *, doubtful: int = 1) -> NotificationId:
    """A notification closed as uncertain by the policy hold, with so many doubtful attempts."""
    (id,) = bench.enqueue()
    worker = Worker(bench)
    for _ in range(doubtful):
        worker.settle(uncertain(worker.claim_one().held))
    worker.settle(hold(worker.claim_one().held))
    return id


class EvidenceContract:
    @pytest.mark.parametrize("fence", [1, None])
    @pytest.mark.parametrize(
        "make",
        [
            retry,
            dead,
            hold,
            uncertain,
            lambda held: word(held, UNCERTAIN, Kind.UNCERTAIN),
            lambda held: word(held, None, Kind.EXPIRED),
        ],
    )
    def test_delivered_closes_whatever_nobody_holds(
        self, bench: Bench, make: Callable[[Held], Word], fence: int | None
    ) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(make(worker.claim_one().held))
        bench.evidence(id, DELIVERED, fence=fence)
        bench.evidence(id, DELIVERED, fence=fence)
        standing = bench.standing(id)
        assert standing.kind is Kind.DELIVERED
        assert standing.evidence == (Said(fence or 0, DELIVERED),)
        assert worker.claim() == ()
        assert bench.conserved()

    @pytest.mark.parametrize("make", [retry, dead, release, uncertain, not_sent, hold])
    def test_delivered_of_a_leased_row_is_done_by_its_holders_next_word(
        self, bench: Bench, make: Callable[[Held], Word]
    ) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.evidence(id, DELIVERED)
        assert bench.standing(id).leased
        assert worker.settle(make(held)) == [Verdict.APPLIED]
        assert bench.standing(id).kind is Kind.DELIVERED
        assert worker.settle(make(held)) == [Verdict.REPEATED]

    def test_a_callback_and_the_word_of_the_same_attempt_are_no_conflict(
        self, bench: Bench
    ) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.evidence(id, DELIVERED, fence=1)
        assert worker.settle(delivered(held)) == [Verdict.APPLIED]

    def test_delivered_is_told_to_the_next_claim_of_a_killed_runs_row(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        Worker(bench).claim_one()
        bench.evidence(id, DELIVERED, fence=1)
        bench.advance(21)
        worker = Worker(bench)
        claimed = worker.claim_one()
        assert claimed.evidence is DELIVERED
        closes = word(claimed.held, None, Kind.DELIVERED, reason="already_delivered")
        assert worker.settle(closes) == [Verdict.APPLIED]
        standing = bench.standing(id)
        assert (standing.kind, standing.ledger) == (
            Kind.DELIVERED,
            (Written(1, UNCERTAIN, True),),
        )

    @pytest.mark.parametrize(("fence", "source"), [(1, "callback"), (None, "operator")])
    @pytest.mark.parametrize("outcome", [NOT_SENT, FAILED])
    def test_a_held_row_opens_again_when_nothing_is_in_doubt(
        self, bench: Bench, fence: int | None, source: str, outcome: AttemptOutcome
    ) -> None:
        id = held_row(bench)
        bench.evidence(id, outcome, fence=fence, source=source)
        standing = bench.standing(id)
        assert (standing.kind, standing.doubt, standing.fence) == (None, False, 3)
        assert standing.ledger == (Written(1, UNCERTAIN), Written(2, HELD))
        assert not Worker(bench).claim_one().doubt

    def test_two_doubtful_attempts_need_two_answers(self, bench: Bench) -> None:
        id = held_row(bench, doubtful=2)
        bench.evidence(id, FAILED, fence=1)
        assert bench.standing(id).kind is Kind.UNCERTAIN
        bench.evidence(id, NOT_SENT, fence=2)
        assert bench.standing(id).kind is None

    def test_one_that_was_refused_for_good_is_dead(self, bench: Bench) -> None:
        id = held_row(bench, doubtful=2)
        bench.evidence(id, REJECTED, fence=1)
        bench.evidence(id, NOT_SENT, fence=2)
        assert bench.standing(id).kind is Kind.DEAD

    def test_an_open_row_loses_its_doubt(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(uncertain(worker.claim_one().held, 60))
        bench.evidence(id, FAILED, fence=1)
        standing = bench.standing(id)
        assert (standing.kind, standing.doubt, standing.fence) == (None, False, 1)
        assert Worker(bench).claim_one().fence == 2, "due now: what it waited for has come"

    def test_what_waits_without_doubt_keeps_its_time(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(retry(worker.claim_one().held, 60))
        bench.evidence(id, FAILED, fence=1)
        assert Worker(bench).claim() == ()

    def test_a_runs_evidence_clears_only_its_own_attempt(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        first, second = Worker(bench), Worker(bench)
        held = first.claim_one().held
        bench.advance(21)
        second.settle(uncertain(second.claim_one().held, 60))
        assert second.settle(retry(held)) == [Verdict.UNKNOWN]
        assert first.settle(retry(held._replace(fence=type(held.fence)(2)))) == [Verdict.UNKNOWN]
        assert bench.standing(id).doubt
        first.settle(retry(held))
        assert bench.standing(id).doubt
        bench.evidence(id, FAILED, fence=2)
        assert not bench.standing(id).doubt

    def test_unknown_ids_are_harmless(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        bench.evidence(type(id)(id + 1000), DELIVERED)
        assert bench.standing(id).kind is None


class OperatorContract:
    def test_cancelling_a_waiting_row_closes_it(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        assert bench.cancel(id) == "cancelled"
        standing = bench.standing(id)
        assert (standing.kind, standing.fence, standing.ledger) == (Kind.CANCELLED, 1, ())
        assert bench.cancel(id) == "cancelled"
        assert Worker(bench).claim() == ()

    def test_cancelling_a_leased_row_is_a_takeover(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        assert bench.cancel(id) == "cancelled_leased"
        standing = bench.standing(id)
        assert (standing.kind, standing.fence) == (Kind.CANCELLED, 2)
        assert standing.ledger == (Written(1, UNCERTAIN, True),)
        assert worker.say(renew=(held,)).lost == (held,)
        assert worker.settle(delivered(held)) == [Verdict.LATE]
        assert bench.standing(id).kind is Kind.DELIVERED

    def test_evidence_of_delivery_outranks_cancel(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        Worker(bench).claim_one()
        bench.evidence(id, DELIVERED)
        assert bench.cancel(id) == "delivered"
        assert bench.standing(id).kind is Kind.DELIVERED

    def test_redrive_opens_a_dead_row_afresh(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(retry(worker.claim_one().held))
        worker.settle(dead(worker.claim_one().held))
        assert bench.redrive(id) == "redriven"
        standing = bench.standing(id)
        assert (standing.kind, standing.attempts, standing.fence) == (None, 0, 3)
        assert standing.ledger == (Written(1, FAILED), Written(2, REJECTED))
        claimed = worker.claim_one()
        assert (claimed.fence, claimed.attempts, claimed.doubt) == (4, 1, False)

    def test_redriving_an_uncertain_row_names_its_policy(self, bench: Bench) -> None:
        id = held_row(bench)
        assert bench.redrive(id) == "needs_resend"
        assert bench.standing(id).kind is Kind.UNCERTAIN
        assert bench.redrive(id, resend=True) == "redriven"
        claimed = Worker(bench).claim_one()
        assert (claimed.doubt, claimed.resend_ordered, claimed.on_uncertain) == (True, True, None)

    def test_an_order_to_resend_holds_until_the_row_closes(self, bench: Bench) -> None:
        id = held_row(bench)
        bench.redrive(id, resend=True)
        worker = Worker(bench)
        first = worker.claim_one()
        (again,) = worker.say(claim=worker.want(), seq=worker.seq).claimed
        assert (first.resend_ordered, again.resend_ordered) == (True, True)
        worker.settle(uncertain(first.held))
        second = worker.claim_one()
        assert (second.resend_ordered, second.attempts) == (True, 2)
        worker.settle(word(second.held, UNCERTAIN, Kind.UNCERTAIN))
        bench.resolve(id, "not_delivered")  # opens it again, and orders nothing
        assert not worker.claim_one().resend_ordered

    def test_nobody_ordered_what_was_only_redriven(self, bench: Bench) -> None:
        (id,) = bench.enqueue(on_uncertain=OnUncertain.RESEND)
        worker = Worker(bench)
        first = worker.claim_one()
        worker.settle(dead(first.held))
        bench.redrive(id)
        claimed = worker.claim_one()
        assert (first.resend_ordered, claimed.resend_ordered) == (False, False)
        assert claimed.on_uncertain is OnUncertain.RESEND

    def test_the_digest_of_a_redriven_attempt_is_kept(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        closes = word(
            worker.claim_one().held, UNCERTAIN, Kind.UNCERTAIN, facts=Facts(digest=b"7" * 16)
        )
        worker.settle(closes)
        bench.redrive(id, resend=True)
        assert worker.claim_one().first_digest == b"7" * 16

    @pytest.mark.parametrize("make", [retry, delivered])
    def test_only_parked_rows_are_redriven(
        self, bench: Bench, make: Callable[[Held], Word]
    ) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(make(worker.claim_one().held))
        before = bench.standing(id)
        assert bench.redrive(id, resend=True) in ("open", "delivered")
        assert bench.standing(id) == before

    def test_a_word_of_before_the_redrive_is_late_or_repeated(self, bench: Bench) -> None:
        (id,) = bench.enqueue()
        worker = Worker(bench)
        held = worker.claim_one().held
        worker.settle(dead(held))
        bench.redrive(id)
        assert worker.settle(dead(held)) == [Verdict.REPEATED]
        assert worker.settle(delivered(held)) == [Verdict.LATE]
        assert bench.standing(id).kind is Kind.DELIVERED

    @pytest.mark.parametrize(
        ("outcome", "verdict"),
        [("delivered", "delivered"), ("not_delivered", "open"), ("dead", "dead")],
    )
    def test_an_operator_resolves_a_held_row(
        self, bench: Bench, outcome: str, verdict: str
    ) -> None:
        id = held_row(bench, doubtful=2)
        assert bench.resolve(id, outcome) == verdict
        assert bench.resolve(id, outcome) == verdict
        assert not bench.standing(id).doubt
        assert bench.conserved()

    def test_a_redriven_row_is_as_old_as_its_redrive(self, bench: Bench) -> None:
        """Or what was parked for days would be given up as too old at the first connection that fails."""
        (id,) = bench.enqueue()
        worker = Worker(bench)
        worker.settle(dead(worker.claim_one().held))
        bench.advance(3 * 86400)
        assert bench.redrive(id) == "redriven"
        bench.advance(5)
        assert Worker(bench).claim_one().age_seconds == pytest.approx(5)

    def test_giving_up_an_open_row_in_doubt_does_not_send_it_again(self, bench: Bench) -> None:
        """As evidence the word would take the doubt away. Whoever wants it stopped cancels it."""
        (id,) = bench.enqueue()
        Worker(bench).claim()
        bench.advance(21)
        worker = Worker(bench)
        worker.settle(release(worker.claim_one().held))
        assert bench.standing(id).doubt
        assert bench.resolve(id, "dead") == "open"
        assert bench.standing(id).doubt
        assert bench.cancel(id) == "cancelled"

    def test_quarantine_is_a_takeover_of_everything_open(self, bench: Bench) -> None:
        waiting, leased, closed = bench.enqueue(3)
        worker = Worker(bench)
        claimed = {row.id: row.held for row in worker.claim()}
        worker.settle(release(claimed[waiting]), delivered(claimed[closed]))
        assert bench.quarantine() == 2
        for id in (waiting, leased):
            standing = bench.standing(id)
            assert (standing.leased, standing.doubt, standing.fence) == (False, True, 2)
            assert Written(2, UNCERTAIN, True) in standing.ledger
        assert worker.settle(retry(claimed[leased])) == [Verdict.LATE]
        assert bench.standing(leased).doubt
        assert all(row.doubt for row in worker.claim())
        assert bench.standing(closed).kind is Kind.DELIVERED
