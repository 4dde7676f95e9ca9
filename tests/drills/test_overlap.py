"""One schedule, two or three runs of it: invocations are interchangeable, and harmless to repeat."""

from rig.ground import wait_until
from tests.drills.ground import Ground, event

SLOTS = 8
RUNTIMES = 3
# Whoever sends first waits at the gate for the start of the slowest.
PATIENT = {"FENCEPOST_SEND_TIMEOUT_SECONDS": "60", "FENCEPOST_LEASE_SECONDS": "70"}
SECONDS = 180


def test_the_same_tick_three_times_at_once_sends_each_notification_once(ground: Ground) -> None:
    """The gate holds every first request until all three runs are seen in mid-send at one time."""
    ground.channel(slots=SLOTS)
    subjects = ground.enqueue(60, "gate")
    runtimes = [ground.runtime(PATIENT, timeout_seconds=SECONDS) for _ in range(RUNTIMES)]
    invoked = [ground.invoke(runtime, "one tick") for runtime in runtimes]
    wait_until(lambda: ground.arrived(subjects) == SLOTS * RUNTIMES, 15, "three runs in mid-send")
    holders = ground.rows(
        "select distinct run_id from fencepost.queue where run_id <> fencepost.nobody()"
    )
    assert len(holders) == RUNTIMES

    def opened() -> bool:
        ground.provider.open_gate()
        return all(one.done() for one in invoked)

    wait_until(opened, 20, "the three runs to end")
    summaries = [one.result().summary for one in invoked]
    assert all(summary is not None for summary in summaries), [one.result() for one in invoked]
    assert sum(summary["claimed"] for summary in summaries if summary) == len(subjects)
    once_more = runtimes[0].invoke(event("one tick")).summary
    assert once_more is not None
    assert (once_more["ended"], once_more["claimed"]) == ("idle", 0)
    count = ground.provider.count()
    assert (count.arrivals, count.effects, count.duplicate_arrivals) == (60, 60, 0)
    assert ground.rows("select kind::text, count(*) from fencepost.closed group by kind") == [
        ("delivered", 60)
    ]
    ground.assert_conserved()
