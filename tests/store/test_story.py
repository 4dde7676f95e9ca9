"""The story `explain` tells of what happened in a real database: true, and in order."""

from collections.abc import Iterator

import pytest

from fencepost.core.exchange import Facts
from fencepost.core.explain import Explanation, explain
from fencepost.core.notification import AttemptOutcome, Kind, NotificationId
from fencepost.store.operator import Operator
from tests.store.bench import Worker, delivered, hold, release, uncertain, word
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    with PostgresBench(database_url) as opened:
        yield opened


def story(database_url: str, id: NotificationId) -> Explanation:
    with Operator(database_url, who="tester") as operator:
        seen = operator.inspect(id)
    assert seen is not None
    return explain(seen)


def test_evidence_that_comes_after_the_hold_is_told_after_it(
    bench: PostgresBench, database_url: str
) -> None:
    (id,) = bench.enqueue()
    stalled, other = Worker(bench), Worker(bench)
    held = stalled.claim_one().held
    bench.advance(60)
    other.settle(hold(other.claim_one().held))
    bench.advance(60)
    stalled.settle(delivered(held))
    told = story(database_url, id)
    first, last = str(stalled.run)[:8], str(other.run)[:8]
    assert [moment.text for moment in told.timeline][1:] == [
        f"attempt 1: claimed by run {first} (invocation bench)",
        f"attempt 1: run {first} (invocation bench) did not come back; taken over, in doubt",
        f"attempt 2: claimed by run {last} (invocation bench)",
        "attempt 2: nothing was sent: it is in doubt, and held",
        "closed as uncertain: hold",
        f"run {first} spoke too late about attempt 1: what it knew was kept as evidence",
        "evidence from the run, too late for its lease about attempt 1: delivered",
        "close as delivered (it was uncertain: hold): evidence",
    ]
    assert told.standing == f"delivered: closed at {told.timeline[-1].at} (evidence)"


def test_a_late_word_that_knew_nothing_left_nothing(
    bench: PostgresBench, database_url: str
) -> None:
    (id,) = bench.enqueue()
    stalled = Worker(bench)
    held = stalled.claim_one().held
    bench.advance(60)
    Worker(bench).claim_one()
    bench.advance(1)
    stalled.settle(uncertain(held))
    assert story(database_url, id).timeline[-1].text == (
        f"run {str(stalled.run)[:8]} spoke too late about attempt 1: "
        "it knew nothing that counts as evidence, and changed nothing"
    )


def test_a_held_one_that_an_operator_gives_up_turns_dead_then(
    bench: PostgresBench, database_url: str
) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    held = worker.claim_one().held
    worker.settle(word(held, AttemptOutcome.UNCERTAIN, Kind.UNCERTAIN, reason="held"))
    bench.advance(5)
    assert bench.resolve(id, "dead") == "dead"
    bench.advance(5)
    bench.evidence(id, AttemptOutcome.DELIVERED)
    assert [moment.text for moment in story(database_url, id).timeline][-6:] == [
        "closed as uncertain: held",
        "resolve by bench (it was uncertain, said to be dead): test",
        "evidence from an operator about attempt 1: rejected: bench: test",
        "close as dead (it was uncertain: held): evidence",
        "evidence from a callback: delivered",
        "close as delivered (it was dead: evidence): evidence",
    ]


def test_a_run_that_only_gave_it_back_is_not_passed_over(
    bench: PostgresBench, database_url: str
) -> None:
    (id,) = bench.enqueue()
    hasty = Worker(bench)
    for _ in range(2):
        hasty.settle(release(hasty.claim_one().held))
        bench.advance(1)
    worker = Worker(bench)
    worker.settle(delivered(worker.claim_one().held))
    last = str(worker.run)[:8]
    assert [moment.text for moment in story(database_url, id).timeline][1:] == [
        "by then attempts 1 to 2 had been claimed and given back unsent",
        f"attempt 3: claimed by run {last} (invocation bench)",
        "attempt 3: delivered",
        "closed as delivered",
    ]


def test_a_question_without_an_answer_is_kept_and_costs_no_attempt(
    bench: PostgresBench, database_url: str
) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    worker.settle(uncertain(worker.claim_one().held))
    bench.advance(60)
    held = worker.claim_one().held
    facts = Facts(detail="answered missing_scope")
    asked = word(held, outcome=AttemptOutcome.NOT_SENT, reason="no_answer", facts=facts)
    worker.settle(asked)
    told = story(database_url, id)
    assert told.timeline[-1].text == (
        "attempt 2: the provider was asked what became of the one before, and could not say: "
        "answered missing_scope"
    )
    bench.advance(60)
    again = worker.claim_one()
    assert (again.doubt, again.attempts, again.fence) == (True, 2, 3)
