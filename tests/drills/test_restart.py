"""The database crashes in mid-run and comes back: words are said again, nothing is lost or sent for nothing."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGQUIT

import psycopg
import pytest

from fencepost.store.migrate import migrate
from rig.ground import wait_until
from rig.postgres import LocalPostgres, local_postgres
from rig.receiver import local_provider
from tests.drills.ground import ANSWER_SECONDS, ANY_ADDRESS, Ground

NOTIFICATIONS = 300


@pytest.fixture
def server() -> Iterator[LocalPostgres]:
    """A server of this drill's own: it will be crashed."""
    with local_postgres() as started:
        yield started


def test_the_database_crashes_in_mid_run(server: LocalPostgres, tmp_path: Path) -> None:
    with psycopg.connect(server.url) as connection:
        migrate(connection)
    with local_provider(tmp_path, address=ANY_ADDRESS) as provider:
        connection = psycopg.connect(server.url, autocommit=True)
        ground = Ground(server.url, connection, provider, tmp_path)
        try:
            crash_in_mid_run(ground, server)
        finally:
            ground.end()
            ground.connection.close()


def crash_in_mid_run(ground: Ground, server: LocalPostgres) -> None:
    ground.channel(slots=8)
    ground.enqueue(NOTIFICATIONS, "slow")
    runtimes = [ground.runtime(), ground.runtime()]
    invoked = [ground.invoke(runtime, "crashed") for runtime in runtimes]
    wait_until(lambda: ground.provider.count().arrivals > 30, 15, "runs in mid-send")
    server.stop(SIGQUIT)
    server.start()
    ground.connection.close()
    ground.connection = psycopg.connect(server.url, autocommit=True)
    results = [one.result(ANSWER_SECONDS) for one in invoked]
    assert any(
        result.summary is not None and result.summary["exchange_troubles"] for result in results
    ), f"no run noticed the crash: {results}"
    ground.run_until(ground.closed, runtimes[0])
    count = ground.provider.count()
    kinds = ground.rows("select kind::text, count(*) from fencepost.closed group by kind")
    assert kinds == [("delivered", NOTIFICATIONS)]
    assert (count.effects, count.duplicate_effects, count.changed_keys) == (NOTIFICATIONS, 0, 0)
    ground.assert_conserved()
