"""53300: no place for another connection. Runs back off, leave what they cannot claim, and end cleanly."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from fencepost.core.exchange import Failure
from fencepost.core.line import Level
from fencepost.ports import StoreFailed
from tests.store.guarded import guarded_postgres
from tests.store.runs import Ticker, bench_on, delivered
from tests.store.session import until

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SLOTS = 6  # of the small server, for everybody
STORM = 20  # runs at once
PLACES = 5  # for them: ten, without those of superusers and of this test


def test_without_a_free_slot_a_run_backs_off_and_leaves_everything() -> None:
    """C11: more runs at once than the server has room for."""
    slots = {"max_connections": str(SLOTS), "superuser_reserved_connections": "2"}
    with guarded_postgres(settings=slots) as small, bench_on(small) as bench:
        url = bench.url()
        bench.ticker.on(url)
        bench.enqueue(3)
        crowd = []
        for _ in range(SLOTS):
            try:
                crowd.append(psycopg.connect(url))
            except psycopg.OperationalError:
                break
        failed = bench.ticker.failed_tick()
        assert failed.failure is Failure.AWAY
        line = bench.ticker.only_trouble()
        assert (line.level, line.action) == (Level.ERROR, "run_not_started")
        assert "slots" in line.particulars["detail"] or "clients" in line.particulars["detail"]
        bench.assert_waiting(3)
        for one in crowd:
            one.close()
        until(lambda: small.backends() == [], "the crowd has left")
        assert delivered(bench.ticker.tick()) == 3
        bench.assert_delivered_at_once(3)


def test_a_storm_of_runs_on_few_slots_delivers_everything_once() -> None:
    """C11: many runs for few places: some deliver, the others leave, and nothing is lost or sent twice."""
    slots = {"max_connections": "10", "superuser_reserved_connections": "3"}
    with guarded_postgres(settings=slots) as small, bench_on(small) as first:
        url = first.url()
        first.ticker.on(url)
        first.enqueue(60)
        together = threading.Barrier(STORM)
        tickers = [Ticker() for _ in range(STORM)]

        def one(ticker: Ticker) -> int | None:
            ticker.on(url)
            together.wait(120)
            try:
                return delivered(ticker.tick(8.0))
            except StoreFailed as failed:
                assert failed.failure is Failure.AWAY  # noqa: PT017  (in a thread, and not for all)
                return None

        with ThreadPoolExecutor(STORM) as pool:
            came = list(pool.map(one, tickers))
        assert came.count(None) == STORM - PLACES, "warm sandboxes keep their places"
        for ticker in tickers:
            ticker.end()
        until(lambda: small.backends() == [], "all have left")
        while first.rows("select count(*) from fencepost.queue") != [(0,)]:
            first.ticker.tick()
        closed = "select kind::text, max(attempts), count(*) from fencepost.closed group by 1"
        assert first.rows(closed) == [("delivered", 1, 60)]
