"""What an invocation answers: JSON that agrees with the database, or an error that names the setting."""

from rig.runtimes import Runtime
from tests.drills.ground import Ground, event


def test_the_summary_agrees_with_the_database_and_the_ledger(ground: Ground) -> None:
    ground.channel()
    ground.enqueue(7, "ok")
    ground.enqueue(2, "error")
    ground.enqueue(3, "gone", times=1000)
    summary = ground.runtime().invoke(event("one")).summary
    assert summary is not None
    closed = dict(ground.rows("select kind::text, count(*) from fencepost.closed group by kind"))
    assert summary["delivered"] == closed["delivered"]
    assert summary["parked"] == closed["dead"] == 3
    assert summary["retried"] == ground.number("select count(*) from fencepost.attempt") >= 2
    assert summary["claimed"] == ground.provider.count().arrivals
    assert str(ground.rows("select id from fencepost.run")[0][0]) == summary["run"]


def test_an_idle_tick_writes_nothing(ground: Ground) -> None:
    ground.channel()
    summary = ground.runtime().invoke(event("idle")).summary
    assert summary is not None
    assert (summary["ended"], summary["drained"], summary["claimed"]) == ("idle", True, 0)
    assert ground.number("select count(*) from fencepost.run") == 0


def test_a_clone_of_another_installation_sends_nothing(ground: Ground) -> None:
    ground.channel()
    ground.enqueue(3, "ok")
    refused(ground, ground.runtime({"FENCEPOST_INSTALLATION": "production"}), "production")


def test_impossible_settings_are_refused_by_name(ground: Ground) -> None:
    ground.channel()
    ground.enqueue(3, "ok")
    refused(ground, ground.runtime({"FENCEPOST_LEASE_SECONDS": "1"}), "FENCEPOST_LEASE_SECONDS")


def refused(ground: Ground, runtime: Runtime, word: str) -> None:
    result = runtime.invoke(event("refused"))
    assert result.summary is None
    assert word in (result.error or "")
    assert ground.provider.count().arrivals == 0
    assert ground.number("select count(*) from fencepost.queue where fence = 0") == 3
