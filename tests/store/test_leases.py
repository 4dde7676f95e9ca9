"""Who holds a row: whoever renews it, by the database's clock alone. Who comes back late frees nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from fencepost.core.access import Database
from fencepost.core.budget import Timing
from fencepost.core.exchange import Verdict
from fencepost.core.notification import NotificationId
from fencepost.core.tally import Count
from fencepost.settings import Settings
from fencepost.store.postgres import PostgresStore
from fencepost.worker import Parts
from fencepost.worker import Worker as Deliverer
from tests.engine.fakes import FakeSender
from tests.store.bench import Worker, not_sent, release
from tests.store.postgres_bench import PostgresBench
from tests.store.runs import OneSender
from tests.store.session import BOUND_SECONDS, session

pytestmark = pytest.mark.postgres
RUNS = 20
BEHIND = "update bench.clock set now = now() - interval '10 minutes' returning true"
SAY = "select id, created from fencepost.enqueue('web', %s, '{\"title\": \"hello\"}'::jsonb, dedupe_key => %s)"


def test_what_is_renewed_is_nobody_elses_however_old_its_claim_is(bench: PostgresBench) -> None:
    """Whoever judges by age starts a send of forty minutes again while it is still under way."""
    (id,) = bench.enqueue()
    slow = Worker(bench)
    (claimed,) = slow.claim(lease_seconds=300)
    for _ in range(2 * 3600 // 240):
        bench.advance(240)
        assert slow.say(renew=(claimed.held,), lease_seconds=300).lost == ()
    bench.advance(3)
    assert not bench.wait(bench.store.has_work())
    assert Worker(bench).claim() == ()
    assert (bench.standing(id).fence, bench.standing(id).doubt) == (1, False)
    bench.advance(298)
    assert Worker(bench).claim_one().id == id, "two hours of renewals ended: one lease is enough"


def test_twenty_runs_at_once_share_a_hundred_rows_and_none_twice(bench: PostgresBench) -> None:
    """Overlapping senders once read the same queue, and the same mail went out dozens of times. Here all twenty
    transactions are open together: none waits for another, and none sees what another has."""
    ids = bench.enqueue(100)
    workers = [Worker(bench) for _ in range(RUNS)]
    together = threading.Barrier(RUNS)

    def claim(worker: Worker) -> list[NotificationId]:
        with session(bench.url) as own:
            claimed = own.say(worker, claim=worker.want(len(ids) // RUNS)).claimed
            together.wait(BOUND_SECONDS)
            own.commit()
            return [one.id for one in claimed]

    with ThreadPoolExecutor(RUNS) as pool:
        claimed = [id for one in pool.map(claim, workers) for id in one]
    assert sorted(claimed) == sorted(ids)


def test_who_comes_back_late_frees_neither_the_row_nor_the_rate_of_another(
    bench: PostgresBench,
) -> None:
    """A worker that was given up by mistake once freed its place a second time, and a third began."""
    bench.enqueue(8, channel="slow")
    given_up, other = Worker(bench), Worker(bench)
    old = [claimed.held for claimed in given_up.claim(4, channel="slow")]
    bench.advance(21)
    new = [claimed.held for claimed in other.claim(4, channel="slow")]
    assert [held.id for held in new] == [held.id for held in old]
    words = [*map(release, old[:2]), *map(not_sent, old[2:])]
    said = given_up.say(*words, last=True)
    assert set(said.verdicts) == {Verdict.LATE}
    assert other.say(renew=tuple(new)).lost == ()
    assert Worker(bench).claim(4, channel="slow") == (), "its four of the rate are spent"


def test_a_runs_own_clock_says_nothing_about_a_lease(own_bench: PostgresBench) -> None:
    """Replicas whose clocks ran ahead once took what others held: here ours is ten minutes ahead."""
    assert own_bench.rows(BEHIND) == [(True,)]
    own_bench.enqueue(3)
    holder = Worker(own_bench)
    assert len(holder.claim(2)) == 2
    parts = Parts(
        store=PostgresStore(own_bench.url), senders=OneSender(FakeSender()), lines=lambda line: None
    )
    settings = Settings(database=Database(), installation="test", timing=Timing())
    with Deliverer(settings, parts) as run:
        assert run.deliver(remaining_seconds=40.0, correlation="1").counts[Count.DELIVERED] == 1
        own_bench.advance(19.9)
        assert run.deliver(remaining_seconds=40.0, correlation="2").counts[Count.CLAIMED] == 0
        own_bench.advance(0.2)
        assert run.deliver(remaining_seconds=40.0, correlation="3").counts[Count.CLAIMED] == 2


def test_a_key_that_was_enqueued_again_keeps_no_dead_runs_rows(bench: PostgresBench) -> None:
    """Putting a stalled row back once broke a unique key, and the whole sweep with it, at every tick."""
    with psycopg.connect(bench.url, autocommit=True) as producer:

        def say(number: int) -> tuple[int, bool]:
            answer = producer.execute(SAY, [f"recipient {number}", f"key {number}"]).fetchone()
            assert answer is not None
            return answer[0], answer[1]

        first = [say(number) for number in range(10)]
        assert all(created for _, created in first)
        assert len(Worker(bench).claim(10)) == 10
        bench.advance(21)
        again = [say(number) for number in range(10)]
    assert again == [(id, False) for id, _ in first]
    taken = Worker(bench).claim(10)
    assert sorted(claimed.id for claimed in taken) == [id for id, _ in first]
    assert all(claimed.doubt for claimed in taken)
