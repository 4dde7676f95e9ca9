"""Gates wait for nobody: a channel row that another holds is no answer, not a wait."""

import pytest

from fencepost.core.exchange import GateWord
from tests.store.bench import Worker
from tests.store.postgres_bench import PostgresBench
from tests.store.session import session

pytestmark = pytest.mark.postgres

HOLD = "select 1 from fencepost.channel where name = %s for update"


def test_a_limited_channel_whose_row_is_busy_gives_nothing_now(bench: PostgresBench) -> None:
    bench.enqueue(3, channel="slow")
    bench.enqueue(2)
    worker = Worker(bench)
    slow, web = worker.channels["slow"].id, worker.channels["web"].id
    with session(bench.url) as other:
        other.rows(HOLD, ["slow"])
        answer = worker.say(claim=worker.want(channel="slow") + worker.want())
        assert {claimed.channel for claimed in answer.claimed} == {web}
        assert len(answer.claimed) == 2
        assert set(answer.gates) == {web}
    answer = worker.say(claim=worker.want(channel="slow"))
    assert len(answer.claimed) == 3
    assert slow in answer.gates


def test_an_unlimited_channel_does_not_care(bench: PostgresBench) -> None:
    bench.enqueue(2)
    worker = Worker(bench)
    with session(bench.url) as other:
        other.rows(HOLD, ["web"])
        answer = worker.say(claim=worker.want())
        assert len(answer.claimed) == 2
        assert worker.channels["web"].id in answer.gates


def test_a_pause_that_found_its_channel_busy_is_missing_in_the_answer(bench: PostgresBench) -> None:
    worker = Worker(bench)
    web, post = worker.channels["web"], worker.channels["post"]
    words = tuple(
        GateWord(channel=channel.id, revision=channel.revision, pause_seconds=30.0, reason="busy")
        for channel in (web, post)
    )
    with session(bench.url) as other:
        other.rows(HOLD, ["web"])
        assert set(worker.say(gates=words).gates) == {post.id}
    assert worker.say(gates=words).gates[web.id].paused_for_seconds == pytest.approx(30)


def test_two_runs_share_one_rate(bench: PostgresBench) -> None:
    bench.enqueue(20, channel="slow")
    workers = [Worker(bench) for _ in range(3)]
    got = sum(len(worker.claim(3, channel="slow")) for worker in workers)
    assert got == 4
    bench.advance(10)
    assert sum(len(worker.claim(3, channel="slow")) for worker in workers) == 4
