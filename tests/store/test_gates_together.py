"""Overlapping runs before one gate: probes of a breaker, a repair in mid-send, bulk beside a few."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from fencepost.core.notification import Claimed
from fencepost.core.outcome import CredentialFailure, Delivered, NotSent
from fencepost.core.reply import Phase, Reply
from fencepost.core.tally import Count, Summary
from tests.store.test_troubled_runs import Ground, Provider, ground

__all__ = ["ground"]
pytestmark = pytest.mark.postgres
HALF_OPEN = """
update fencepost.channel set paused_until = now(), pause_reason = 'breaker 1: 8 of the last 8 sends failed'
 where name = 'one'"""
FIRST = """
update fencepost.queue q set priority = 0
  from fencepost.notification n where n.id = q.notification_id and n.recipient = 'bulk'"""
LEFT = "select count(*), max(attempts) from fencepost.queue"


@dataclass
class Meeting(Provider):
    """Its first sends wait for each other, so that both runs probe at one time; a bound, for a run that comes late."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))

    async def send(self, claimed: Claimed, prepared: Any, *, timeout_seconds: float) -> Reply:
        reply = await super().send(claimed, prepared, timeout_seconds=timeout_seconds)
        with contextlib.suppress(threading.BrokenBarrierError):
            await asyncio.to_thread(self.barrier.wait, 0.5)
        return reply


def two_ticks(ground: Ground) -> list[Summary]:
    with ThreadPoolExecutor(2) as threads:
        return [tick.result() for tick in [threads.submit(ground.tick) for _ in range(2)]]


def test_two_runs_at_a_half_open_breaker_send_a_probe_each_and_it_opens_one_level_further(
    ground: Ground,
) -> None:
    dead = Meeting(answer=lambda _: NotSent("refused"))
    ground.ways.by_name = {"one": dead, "two": Provider()}
    ground.enqueue("one", "r", 100)
    ground.database.execute(HALF_OPEN)
    two_ticks(ground)
    assert 1 <= len(dead.reached) <= 2
    assert ground.paused()["one"].startswith("breaker 2: ")
    assert ground.rows(LEFT) == [(100, 0)]


def test_a_probe_that_is_answered_opens_the_channel_for_both_and_each_is_sent_once(
    ground: Ground,
) -> None:
    well = Meeting()
    ground.ways.by_name = {"one": well, "two": Provider()}
    ground.enqueue("one", "r", 60)
    ground.database.execute(HALF_OPEN)
    summaries = two_ticks(ground)
    while ground.rows(LEFT) != [(0, None)]:  # a busy machine may need a run more
        summaries.append(ground.tick())
    assert sum(each.counts[Count.DELIVERED] for each in summaries) == len(well.reached) == 60
    assert ground.paused() == {}


class Repaired(Provider):
    """While it refuses, an operator repairs the channel; what begins after that is accepted."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.ground, self.repaired = ground, False

    async def send(self, claimed: Claimed, prepared: Any, *, timeout_seconds: float) -> Reply:
        reply = await super().send(claimed, prepared, timeout_seconds=timeout_seconds)
        if self.repaired:
            return reply
        self.repaired = True
        self.ground.database.execute("select fencepost.channel_resume('one')")
        return Reply(phase=Phase.ANSWERED, status=401)

    def classify(self, claimed: Claimed, reply: Reply) -> Any:
        return Delivered() if reply.status == 200 else CredentialFailure("answered 401")


def test_a_run_that_is_refused_while_its_channel_is_repaired_pauses_nobody_else(
    ground: Ground,
) -> None:
    """Its own sends stop, for it knows no better; the next run finds the channel open and burns nothing."""
    repaired = Repaired(ground)
    ground.ways.by_name = {"one": repaired, "two": Provider()}
    ground.database.execute("update fencepost.channel set slots = 1 where name = 'one'")
    ground.enqueue("one", "r", 10)
    ground.tick()
    assert ground.paused() == {}
    assert ground.rows("select coalesce(max(attempts), 0) from fencepost.queue") == [(0,)]
    ground.database.execute("update fencepost.queue set due_at = now()")
    ground.tick()
    assert ground.rows(
        "select kind::text, attempts, count(*) from fencepost.closed group by 1, 2"
    ) == [("delivered", 1, 10)]


def test_a_few_go_beside_the_bulk_of_another_channel_and_not_behind_it(ground: Ground) -> None:
    """Ten slots each: the few are among the first sends, however many wait elsewhere, of whatever priority."""
    order: list[str] = []

    def noted(recipient: str) -> Delivered:
        order.append(recipient)
        return Delivered()

    ground.ways.by_name = {"one": Provider(answer=noted), "two": Provider(answer=noted)}
    ground.enqueue("one", "bulk", 1000)
    ground.enqueue("two", "few", 10)
    ground.database.execute(FIRST)
    ground.tick()
    last = max(place for place, recipient in enumerate(order) if recipient == "few")
    assert order.count("few") == 10
    assert last < 100, "within the first exchanges"
