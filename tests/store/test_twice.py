"""G2 and G3 where somebody wrote into the tables by hand, or a failover lost counters."""

import psycopg
import pytest

from fencepost.core.exchange import Verdict
from fencepost.core.notification import AttemptOutcome, Kind, NotificationId
from tests.store.bench import Said, Worker, Written, dead, delivered, retry
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres


def put_back(bench: PostgresBench, id: NotificationId, fence: int) -> None:
    bench.rows(
        """insert into fencepost.queue (notification_id, channel, priority, due_at, fence)
           select id, channel, priority, due_at, %s from fencepost.notification where id = %s returning 1""",
        [fence, id],
    )


@pytest.mark.parametrize("fence", [0, 1])
def test_a_row_put_back_by_hand_is_a_conflict_and_sinks_nothing(
    bench: PostgresBench, fence: int
) -> None:
    ids = bench.enqueue(5)
    worker = Worker(bench)
    first = worker.claim()
    worker.settle(delivered(first[0].held))
    put_back(bench, first[0].id, fence)
    assert not bench.conserved()
    other = Worker(bench)
    (again,) = other.claim()
    mine = [worker.say(*(delivered(claimed.held) for claimed in first[1:])).verdicts]
    assert mine == [(Verdict.APPLIED,) * 4]
    assert other.settle(delivered(again.held)) == [Verdict.CONFLICT]
    assert bench.conserved()
    assert all(bench.standing(id).kind is Kind.DELIVERED for id in ids)
    assert Said(fence + 1, AttemptOutcome.DELIVERED) in bench.standing(again.id).evidence
    assert bench.rows("select id from fencepost.conflicts()") == [(again.id,)]


def test_one_conflict_in_a_batch_sinks_nothing(bench: PostgresBench) -> None:
    bench.enqueue(5)
    worker = Worker(bench)
    first = worker.claim()
    worker.settle(dead(first[0].held))
    put_back(bench, first[0].id, 0)
    (again,) = worker.claim()
    words = [delivered(claimed.held) for claimed in (first[1], again, *first[2:])]
    applied = Verdict.APPLIED
    assert worker.settle(*words) == [applied, Verdict.CONFLICT, applied, applied, applied]
    assert bench.conserved()


def test_the_keys_refuse_whatever_the_code_does(bench: PostgresBench) -> None:
    bench.enqueue(2)
    worker = Worker(bench)
    one, two = worker.claim()
    worker.settle(delivered(one.held), retry(two.held))
    for table in ("closed", "attempt"):
        with pytest.raises(psycopg.errors.UniqueViolation):
            bench.rows(f"insert into fencepost.{table} select * from fencepost.{table} returning 1")


def test_a_fence_that_was_lost_and_used_again(bench: PostgresBench) -> None:
    """A failover forgot the first claim: both holders stand at fence 1; neither writes over the other."""
    (id,) = bench.enqueue()
    old, new = Worker(bench), Worker(bench)
    held = old.claim_one().held
    bench.rows(
        """update fencepost.queue set fence = 0, run_id = fencepost.nobody(), lease_until = '-infinity'
            where notification_id = %s returning 1""",
        [id],
    )
    assert new.claim_one().held == held
    assert old.settle(retry(held)) == [Verdict.UNKNOWN]
    assert bench.standing(id).ledger == ()
    assert new.settle(delivered(held)) == [Verdict.APPLIED]
    assert old.settle(delivered(held)) == [Verdict.CONFLICT]
    assert bench.standing(id).ledger == (Written(1, AttemptOutcome.DELIVERED),)
    assert bench.rows("select id from fencepost.conflicts()") == [(id,)]


@pytest.mark.parametrize(
    "harm", ["delete from fencepost.queue", "delete from fencepost.notification"]
)
def test_conservation_sees_what_is_lost(bench: PostgresBench, harm: str) -> None:
    bench.enqueue(3)
    assert bench.rows("select * from fencepost.conservation()") == [(3, 3, 0, 0, 0, 0, True)]
    bench.rows(f"{harm} returning 1")
    assert not bench.conserved()
