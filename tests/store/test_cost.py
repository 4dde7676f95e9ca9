"""What a notification costs from claim to closed, in bytes of WAL and in updates that touch no index."""

from collections.abc import Iterator

import psycopg
import pytest

from fencepost.core.exchange import Facts
from fencepost.core.reply import Phase
from fencepost.store.migrate import migrate
from rig.postgres import local_postgres
from tests.store.bench import Worker, delivered, release
from tests.store.postgres_bench import PostgresBench
from tests.store.session import Session, session

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROWS, BATCH, BYTES_MAX = 2000, 50, 600
HOT = """select pg_stat_get_xact_tuples_updated(c.oid), pg_stat_get_xact_tuples_hot_updated(c.oid)
           from pg_class c where c.oid = 'fencepost.queue'::regclass"""
RUN_WRITTEN = "select pg_stat_get_xact_tuples_updated('fencepost.run'::regclass)"
LSN = "select pg_current_wal_insert_lsn() - '0/0'"
FACTS = Facts(
    phase=Phase.ANSWERED, status=202, reference="msg_0123456789", digest=b"0" * 16, took_ms=87
)


@pytest.fixture(scope="module")
def quiet_bench() -> Iterator[PostgresBench]:
    """A server of its own: nobody else writes WAL, and no page is written whole."""
    settings = {"autovacuum": "off", "full_page_writes": "off"}
    with local_postgres(settings=settings) as server:
        with psycopg.connect(server.url) as connection:
            migrate(connection)
        with PostgresBench(server.url) as bench:
            yield bench


def test_a_notification_costs_at_most_so_many_bytes_from_claim_to_closed(
    quiet_bench: PostgresBench,
) -> None:
    bench = quiet_bench
    bench.enqueue(ROWS + BATCH)
    worker = Worker(bench)
    claimed = worker.claim(BATCH)
    ((before,),) = bench.rows(LSN)
    done = 0
    while done < ROWS:
        words = [delivered(one.held, FACTS) for one in claimed]
        done += len(words)
        claimed = worker.say(*words, claim=worker.want(BATCH)).claimed
    ((after,),) = bench.rows(LSN)
    assert (after - before) / done <= BYTES_MAX


def test_an_exchange_of_any_size_has_room_in_the_journal(quiet_bench: PostgresBench) -> None:
    """Around the size at which its lists are compressed, and at the largest claim there is."""
    bench = quiet_bench
    bench.reset()
    sizes = [200, *range(215, 260), 300, 500, 1000]
    bench.enqueue(2 * sum(sizes))
    worker = Worker(bench)
    with session(bench.url, autocommit=True) as own:
        for size in sizes:
            claimed = own.say(worker, claim=worker.want(size)).claimed
            words = [delivered(one.held) for one in claimed]
            claimed = own.say(worker, *words, claim=worker.want(size)).claimed
            assert len(words) == len(claimed) == size
            own.say(worker, *(delivered(one.held) for one in claimed))
    assert bench.conserved()


def test_looking_for_work_writes_nothing(quiet_bench: PostgresBench) -> None:
    bench = quiet_bench
    bench.wait(bench.store.has_work())
    ((before,),) = bench.rows(LSN)
    for _ in range(10):
        bench.wait(bench.store.has_work())
    assert bench.rows(LSN) == [(before,)]


def test_claims_renewals_and_releases_touch_no_index(quiet_bench: PostgresBench) -> None:
    bench = quiet_bench
    bench.reset()
    bench.enqueue(1000)
    worker = Worker(bench)
    with session(bench.url) as own:
        for _ in range(5):
            held = tuple(one.held for one in own.say(worker, claim=worker.want(200)).claimed)
            assert len(held) == 200
            all_hot(own)
            own.say(worker, renew=held[:100])
            all_hot(own)
            own.say(worker, *(release(one) for one in held[:20]))
            all_hot(own)


def test_a_run_that_has_work_never_writes_its_own_row(quiet_bench: PostgresBench) -> None:
    """While somebody holds a snapshot every version of it would stay, and lie on the way of each exchange."""
    bench = quiet_bench
    bench.reset()
    bench.enqueue(50)
    worker = Worker(bench)
    with session(bench.url) as own:
        claimed = own.say(worker, claim=worker.want(10)).claimed
        while claimed:
            own.say(worker, renew=tuple(one.held for one in claimed))
            words = [delivered(one.held) for one in claimed]
            claimed = own.say(worker, *words, claim=worker.want(10)).claimed
        assert own.rows(RUN_WRITTEN) == [(0,)]
        own.say(worker, last=True)
        assert own.rows(RUN_WRITTEN) == [(1,)]


def all_hot(own: Session) -> None:
    """Since the session last reported: whatever was updated, was updated in its page."""
    ((updates, hot),) = own.rows(HOT)
    own.commit()
    assert updates == hot
