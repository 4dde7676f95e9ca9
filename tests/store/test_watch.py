"""What is watched beside the runs: channels that are paused while something due waits in them."""

import pytest

from fencepost.store.postgres import PostgresStore
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
PAUSE = "select fencepost.channel_pause(%s, 'test', %s)"


def paused(bench: PostgresBench, *channels: str) -> int:
    assert isinstance(bench.store, PostgresStore)
    return bench.wait(bench.store.paused_channels(channels))


def test_a_pause_counts_while_something_due_waits_behind_it(bench: PostgresBench) -> None:
    assert paused(bench) == 0
    bench.enqueue(due_in=10)
    bench.rows(PAUSE, ["web", 60.0])
    assert paused(bench) == 0, "nothing is due: nobody waits"
    bench.advance(11)
    assert (paused(bench), paused(bench, "web"), paused(bench, "post")) == (1, 1, 0)
    bench.advance(60)
    assert paused(bench) == 0, "the pause is over"


def test_a_pause_without_an_end_counts_too_and_an_open_channel_does_not(
    bench: PostgresBench,
) -> None:
    bench.enqueue()
    assert paused(bench) == 0
    bench.rows(PAUSE, ["web", None])
    assert paused(bench) == 1
