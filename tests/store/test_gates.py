"""What a channel allows, shared by all runs through its one row: pauses, probes, and nobody's bulk before another's."""

import pytest

from fencepost.core.exchange import GateWord
from tests.store.bench import Worker
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres


def pause(worker: Worker, reason: str, seconds: float = 30.0, *, channel: str = "web") -> None:
    known = worker.channels[channel]
    word = GateWord(channel=known.id, revision=known.revision, pause_seconds=seconds, reason=reason)
    worker.say(gates=(word,))


def told(bench: PostgresBench, channel: str = "web") -> tuple[float, str | None]:
    known = Worker(bench).channels[channel]
    return known.paused_for_seconds, known.pause_reason


def test_a_breakers_reason_outlives_its_pause_so_that_the_next_run_probes(
    bench: PostgresBench,
) -> None:
    pause(Worker(bench), "breaker 2: the probe failed")
    assert told(bench) == (30.0, "breaker 2: the probe failed")
    bench.advance(31)
    assert told(bench) == (0.0, "breaker 2: the probe failed")
    bench.advance(600)
    assert told(bench) == (0.0, None)


def test_any_other_reason_ends_with_its_pause_and_a_resume_ends_a_breakers_too(
    bench: PostgresBench,
) -> None:
    pause(Worker(bench), "throttled")
    bench.advance(31)
    assert told(bench) == (0.0, None)
    pause(Worker(bench), "breaker 9: the probe failed")
    bench.rows("select * from fencepost.channel_resume('web')")
    assert told(bench) == (0.0, None)


def test_a_run_that_began_before_the_repair_cannot_pause_it_again(bench: PostgresBench) -> None:
    stale = Worker(bench)
    pause(Worker(bench), "credentials: 401")
    bench.repair("web")
    for reason in (
        "credentials: 401",
        "breaker 1: 8 of the last 8 sends failed",
        "unregistered: x",
    ):
        pause(stale, reason)
    assert told(bench) == (0.0, None)


def test_one_channels_bulk_goes_before_nobody_elses(bench: PostgresBench) -> None:
    """Each channel has slots of its own, so one's backlog, however old, is never in another's way."""
    bench.enqueue(3000, due_in=-3600)
    (late,) = bench.enqueue(1, channel="post")
    worker = Worker(bench)
    claimed = worker.say(claim=worker.want(50) + worker.want(50, channel="post")).claimed
    assert late in {row.id for row in claimed}
    assert len(claimed) == 51


def test_what_is_only_behind_a_pause_is_no_work(bench: PostgresBench) -> None:
    bench.enqueue(5)
    assert bench.wait(bench.store.has_work())
    pause(Worker(bench), "breaker 1: 8 of the last 8 sends failed")
    assert not bench.wait(bench.store.has_work())
    worker = Worker(bench)
    assert worker.claim() == ()
    bench.advance(31)
    assert bench.wait(bench.store.has_work())
