"""A tick that does not get through, a queue, and drains in real runtimes: one wave, and another when it is used up."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.event_source import Cloud, EventSource, Queue, event_of, local_cloud
from rig.ground import ROOT, wait_until
from rig.receiver import SECRET
from rig.runtimes import Runtime
from tests.drills.ground import INSTALLATION, TIMING, Ground, event

SECONDS = 8  # of a function: some four of them claim
VISIBILITY_SECONDS = 48
ENDED = "select count(*) from fencepost.command where what = 'drain' and ended_at is not null"
DELIVERED = "select count(*) from fencepost.closed where kind = 'delivered'"


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with local_cloud() as started:
        yield started


@pytest.fixture
def queue(cloud: Cloud) -> Iterator[Queue]:
    """Deleted afterwards: all clouds of one test session are one, and its name is given once."""
    queue = Queue.create(cloud, visibility_seconds=VISIBILITY_SECONDS, receives_max=3)
    yield queue
    queue.sqs.delete_queue(QueueUrl=queue.url)
    queue.sqs.delete_queue(QueueUrl=queue.dlq_url)


def decisions(runtime: Runtime) -> list[dict[str, Any]]:
    """What its runs decided about others, from its log."""
    lines = [line for line in runtime.log().splitlines() if '"action":"scale_out"' in line]
    return [json.loads(line[line.index("{") :]) for line in lines]


def environment(cloud: Cloud, queue: Queue, messages_max: int) -> dict[str, str]:
    return {
        **cloud.environment,
        "FENCEPOST_QUEUE_URL": queue.url,
        "FENCEPOST_DRAIN_MESSAGES_MAX": str(messages_max),
    }


def test_two_ticks_that_do_not_get_through_send_one_wave_and_its_runs_finish(
    ground: Ground, cloud: Cloud, queue: Queue, tmp_path: Path
) -> None:
    ground.channel(slots=2)
    around = environment(cloud, queue, messages_max=2)
    ticks = [ground.warm(ground.runtime(around, timeout_seconds=SECONDS)) for _ in range(2)]
    due = len(ground.enqueue(600, "slow"))
    for answer in [ground.invoke(tick) for tick in ticks]:
        summary = answer.result().summary
        assert summary is not None
        assert summary["ended"] == "deadline"
    told = [line for tick in ticks for line in decisions(tick)]
    assert sorted(line["messages"] for line in told) == [0, 2], told
    assert {line["reason"] for line in told if not line["messages"]} == {"a wave is out already"}
    wait_until(lambda: queue.count() == 2, 10, "the second to be seen, a second after the first")

    drains = [backfill(ground, around, tmp_path, number) for number in (1, 2)]
    try:
        with EventSource(queue, drains) as source:
            wait_until(lambda: ground.number(ENDED) >= 2, 60, "the wave to be used up")
            assert ground.number(DELIVERED) < due, (
                "the drill is about those that do not get through"
            )
            ground.channel(slots=200)  # now they do
            assert ticks[0].invoke(event("later")).summary is not None
            wait_until(lambda: ground.number(DELIVERED) == due, 90, "everything to be delivered")
            wait_until(lambda: queue.count() == 0, 60, "the last wave to end")
    finally:
        for drain in drains:
            drain.end()
    sent = [line["messages"] for one in (*drains, *ticks) for line in decisions(one)]
    assert max(sent) <= 2, "a wave is never larger than it may be"
    assert sum(len(one.messages) for one in source.deliveries) == sum(sent), "each message once"
    ground.assert_conserved()


def backfill(ground: Ground, around: dict[str, str], folder: Path, number: int) -> Runtime:
    """Warm: it has answered something."""
    own = {
        "DATABASE_URL": ground.url,
        "FENCEPOST_INSTALLATION": INSTALLATION,
        "DRILL_SECRET": SECRET,
        **TIMING,
        **around,
    }
    runtime = Runtime(
        own,
        timeout_seconds=SECONDS,
        folder=folder,
        name=f"drain-{number}",
        task_root=ROOT / "functions" / "backfill",
    ).start()
    nothing = event_of([{"MessageId": "0", "ReceiptHandle": "0", "Body": "no command"}])
    wait_until(lambda: runtime.invoke(nothing).summary is not None, 30, "a warm start")
    return runtime
