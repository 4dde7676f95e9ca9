"""Ticks through a transaction-mode pooler that is not as it was: as without one, one reconnect and no attempt spent."""

from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fencepost.core.exchange import Failure
from fencepost.core.line import Level
from fencepost.core.tally import Ending
from rig.ground import free_port
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres
from tests.store.pooler import pooler
from tests.store.runs import Bench, Ticker, bench_on, delivered, first_time, in_mid_send
from tests.store.session import until

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
IN_TRANSACTION = "select count(*) from pg_stat_activity where state like 'idle in%'"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """It lets in whoever comes: before a pooler, the pooler asks for passwords."""
    with guarded_postgres(method="trust") as server:
        yield server


@pytest.fixture
def bench(guarded: Guarded) -> Iterator[Bench]:
    with bench_on(guarded) as opened:
        yield opened


def way(bench: Bench, pooled: str, **changes: str) -> str:
    """The worker's way in through that pooler."""
    port = conninfo_to_dict(pooled)["port"]
    return make_conninfo(bench.url(), port=port, **changes)


def test_whole_ticks_leave_nothing_open_in_the_server(guarded: Guarded, bench: Bench) -> None:
    seen: list[object] = []
    bench.ticker.sender.on_send = in_mid_send(lambda: seen.append(bench.rows(IN_TRANSACTION)))
    with pooler(guarded.server.url, size=1) as url:
        bench.ticker.on(way(bench, url))
        for _ in range(3):
            bench.enqueue(10)
            assert delivered(bench.ticker.tick()) == 10
            assert bench.ticker.troubles() == []
        assert bench.ticker.tick().ended is Ending.IDLE
        bench.ticker.end()
    assert seen == [[(0,)]] * 30
    bench.assert_delivered_at_once(30)


def test_the_pooler_restarts_between_two_ticks(guarded: Guarded, bench: Bench) -> None:
    port = free_port()
    with pooler(guarded.server.url, size=1, port=port) as url:
        bench.ticker.on(way(bench, url))
        bench.ticker.tick()
    bench.enqueue(3)
    with pooler(guarded.server.url, size=1, port=port):
        assert delivered(bench.ticker.tick()) == 3
        assert bench.ticker.only_trouble().action == "database_redialled"
        bench.ticker.end()
    bench.assert_delivered_at_once(3)


def test_the_servers_session_ends_behind_the_pooler_in_mid_run(
    guarded: Guarded, bench: Bench
) -> None:
    bench.ticker.sender.on_send = in_mid_send(first_time(guarded.end_backends))
    bench.enqueue(4)
    with pooler(guarded.server.url, size=1) as url:
        bench.ticker.on(way(bench, url))
        assert delivered(bench.ticker.tick()) == 4
        assert all(line.action == "exchange_trouble" for line in bench.ticker.troubles())
        bench.ticker.end()
    bench.assert_delivered_at_once(4)


def test_a_pooler_without_a_place_for_another_client(guarded: Guarded, bench: Bench) -> None:
    settings = {"auth_type": "any", "max_client_conn": "1"}
    with pooler(guarded.server.url, size=1, settings=settings) as url:
        bench.ticker.on(way(bench, url))
        bench.ticker.tick()
        bench.enqueue(2)
        other = Ticker()
        other.on(way(bench, url))
        assert other.failed_tick().failure is Failure.AWAY
        line = other.only_trouble()
        assert (line.level, line.action) == (Level.ERROR, "run_not_started")
        assert "no more connections allowed" in line.particulars["detail"]
        bench.assert_waiting(2)
        bench.ticker.end()
        until(lambda: delivered(other.tick()) == 2, "the place is free")
        other.end()


@pytest.mark.parametrize("method", ["scram-sha-256", "md5"])
def test_the_poolers_no_is_a_refused_login_too(guarded: Guarded, bench: Bench, method: str) -> None:
    """28P01 in another program's words: a password read anew is tried once."""
    users = guarded.folder / "users.txt"
    users.write_text(f'"{ROLE}" "second-hunter2"\n')
    settings = {"auth_type": method, "auth_file": str(users)}
    bench.enqueue(2)
    with pooler(guarded.server.url, size=1, settings=settings) as url:
        bench.ticker.on(way(bench, url, password=PASSWORD))
        assert bench.ticker.failed_tick().failure is Failure.REFUSED
        assert "authentication failed" in bench.ticker.only_trouble().particulars["detail"]
        bench.assert_waiting(2)
        renewed: list[bool] = []

        class Rotated:
            def conninfo(self, *, anew: bool = False) -> str:
                renewed.append(anew)
                return way(bench, url, password="second-hunter2" if anew else PASSWORD)

        bench.ticker.on(Rotated())
        assert delivered(bench.ticker.tick()) == 2
        assert renewed == [False, True]
        assert bench.ticker.only_trouble().action == "database_redialled"
        bench.ticker.end()
    bench.assert_delivered_at_once(2)
