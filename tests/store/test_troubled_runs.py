"""Whole runs of the real worker on a real server, beside providers in trouble: fakes that do as a test says."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from fencepost.core.access import Database
from fencepost.core.budget import Timing
from fencepost.core.channel import Channel
from fencepost.core.line import Line
from fencepost.core.notification import ChannelId, Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase, Reply
from fencepost.core.tally import Count, Summary
from fencepost.ports import Sender
from fencepost.settings import Settings
from fencepost.store.postgres import PostgresStore
from fencepost.worker import Parts, Worker
from tests.engine.fakes import FakeSender
from tests.store.runs import SHORT

pytestmark = pytest.mark.postgres
CHANNELS = """
insert into fencepost.installation (name) values ('test');
insert into fencepost.channel (name, sender, on_uncertain, slots, policy)
values ('one', 'fake', 'hold', 10, '{"backoff_base_seconds": 600}'), ('two', 'fake', 'hold', 10, '{}')"""
ENQUEUE = "select fencepost.enqueue(%s, %s, '{}'::jsonb) from generate_series(1, %s)"
Answer = Callable[[str], Outcome]


@dataclass
class Provider(FakeSender):
    """Answers each recipient as it is told to; remembers whom it was asked to reach."""

    answer: Answer = lambda recipient: Delivered()
    reached: list[str] = field(default_factory=list)

    async def send(self, claimed: Claimed, prepared: Any, *, timeout_seconds: float) -> Reply:
        self.reached.append(claimed.recipient)
        return Reply(phase=Phase.ANSWERED, status=200)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return self.answer(claimed.recipient)


class Hosts(Provider):
    """Its recipients are names of hosts."""

    def origin_of(self, recipient: str) -> str | None:
        return recipient


@dataclass
class Ways:
    """The sender of each channel; `others` are what a look for other credentials finds."""

    by_name: dict[str, Sender] = field(default_factory=dict)
    others: dict[ChannelId, Sender] = field(default_factory=dict)

    def sender(self, channel: Channel) -> Sender:
        return self.by_name[channel.name]

    async def renewed(self, channel: ChannelId) -> Sender | None:
        return self.others.get(channel)

    async def wake(self) -> None: ...

    async def close(self) -> None: ...


@dataclass
class Ground:
    url: str
    database: psycopg.Connection
    ways: Ways = field(default_factory=Ways)
    lines: list[Line] = field(default_factory=list)

    def enqueue(self, channel: str, recipient: str, count: int = 1) -> None:
        self.database.execute(ENQUEUE, [channel, recipient, count])

    def tick(self, seconds: float = 4.0, timing: Timing = SHORT) -> Summary:
        parts = Parts(store=PostgresStore(self.url), senders=self.ways, lines=self.lines.append)
        settings = Settings(database=Database(), installation="test", timing=timing)
        with Worker(settings, parts) as worker:
            return worker.deliver(remaining_seconds=seconds, correlation="tick")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.execute(query.encode()).fetchall()

    def paused(self) -> dict[str, str]:
        found = self.rows(
            "select name, pause_reason from fencepost.channel where paused_until > now()"
        )
        return dict(found)


@pytest.fixture
def ground(database_url: str) -> Iterator[Ground]:
    with psycopg.connect(database_url, autocommit=True) as database:
        database.execute(CHANNELS)
        yield Ground(database_url, database)


def test_a_dead_host_behind_one_channel_starves_no_other(ground: Ground) -> None:
    """Its backlog is older and far larger than what there are slots for."""
    hosts = Hosts(answer=lambda host: NotSent("refused") if host == "dead" else Delivered())
    ground.ways.by_name = {"one": hosts, "two": Provider()}
    ground.enqueue("one", "dead", 200)
    ground.enqueue("one", "alive", 10)
    summary = ground.tick()
    assert summary.counts[Count.DELIVERED] == 10
    assert hosts.reached.count("dead") <= 20, (
        "what was under way when it was found out, and no more"
    )
    assert ground.paused() == {}
    ((least, spread),) = ground.rows(
        "select min(due_at) > now(), count(distinct date_trunc('second', due_at)) from fencepost.queue"
    )
    assert least, "the next run does not meet them all at once"
    assert spread > 20


class Mute(Hosts):
    """A host that says nothing until everybody else was reached, or the time for it is over."""

    def __init__(self, others: int) -> None:
        super().__init__()
        self.others, self.all_reached, self.timeouts = others, asyncio.Event(), 0

    async def send(self, claimed: Claimed, prepared: Any, *, timeout_seconds: float) -> Reply:
        reply = await super().send(claimed, prepared, timeout_seconds=timeout_seconds)
        if claimed.recipient != "mute":
            if self.reached.count("alive") == self.others:
                self.all_reached.set()
            return reply
        try:
            await asyncio.wait_for(self.all_reached.wait(), timeout_seconds)
        except TimeoutError:
            self.timeouts += 1
        return Reply(phase=Phase.UNCERTAIN)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return Delivered() if reply.phase is Phase.ANSWERED else Uncertain("no answer")


def test_a_host_that_says_nothing_leaves_slots_to_the_others_while_it_is_waited_for(
    ground: Ground,
) -> None:
    """Its backlog is older and larger: with all slots its own, the others would be reached after a timeout."""
    hosts = Mute(others=20)
    ground.ways.by_name = {"one": hosts, "two": Provider()}
    ground.enqueue("one", "mute", 60)
    ground.enqueue("one", "alive", 20)
    summary = ground.tick(60.0, timing=Timing())
    assert summary.counts[Count.DELIVERED] == 20
    assert hosts.timeouts == 0, "the others were reached meanwhile"
    assert ground.rows("select max(attempts) from fencepost.queue") in ([(0,)], [(None,)])


def test_a_dead_provider_is_left_alone_after_a_few_sends(ground: Ground) -> None:
    dead, well = Provider(answer=lambda _: NotSent("refused")), Provider()
    ground.ways.by_name = {"one": dead, "two": well}
    ground.enqueue("one", "r", 100)
    ground.enqueue("two", "r", 30)
    summary = ground.tick()
    assert len(dead.reached) <= 20
    assert summary.counts[Count.DELIVERED] == 30
    assert list(ground.paused()) == ["one"]
    assert ground.paused()["one"].startswith("breaker 1: ")
    sent = len(dead.reached)
    assert ground.tick().counts[Count.CLAIMED] == 0, "the next run knows of it"
    ground.database.execute("update fencepost.channel set paused_until = now()")
    ground.database.execute("update fencepost.queue set due_at = now()")
    ground.tick()
    assert len(dead.reached) == sent + 1, "one probe"
    assert ground.paused()["one"].startswith("breaker 2: ")


def test_refused_credentials_stop_their_channel_and_burn_nothing(ground: Ground) -> None:
    ground.ways.by_name = {
        "one": Provider(answer=lambda _: CredentialFailure("answered 403")),
        "two": Provider(),
    }
    ground.enqueue("one", "r", 30)
    ground.enqueue("two", "r", 5)
    summary = ground.tick()
    assert summary.counts[Count.DELIVERED] == 5
    assert ground.paused() == {"one": "credentials: answered 403"}
    assert ground.rows("select max(attempts), count(*) from fencepost.queue") == [(0, 30)]


def test_credentials_that_were_changed_meanwhile_are_used_and_nothing_pauses(
    ground: Ground,
) -> None:
    old, fresh = Provider(answer=lambda _: CredentialFailure("answered 403")), Provider()
    ((one,),) = ground.rows("select id from fencepost.channel where name = 'one'")
    ground.ways = Ways({"one": old, "two": Provider()}, {ChannelId(one): fresh})
    ground.enqueue("one", "r", 30)
    assert ground.tick().counts[Count.DELIVERED] >= 20, "all but those under way at the time"
    assert ground.paused() == {}
    ground.database.execute("update fencepost.queue set due_at = now()")
    ground.tick()
    assert ground.rows("select max(attempts) from fencepost.closed") == [(1,)]


def test_all_of_fifty_tokens_said_to_be_bad_are_an_alarm_and_nobody_is_pruned(
    ground: Ground,
) -> None:
    bad = Provider(answer=lambda _: Unregistered("BadDeviceToken", guarded=True))
    ground.ways.by_name = {"one": bad, "two": Provider()}
    ground.enqueue("one", "token", 50)
    summary = ground.tick()
    assert summary.counts[Count.UNREGISTERED_MASSES] == 1
    assert ground.paused()["one"].startswith("unregistered: 20 of the last ")
    assert len(bad.reached) <= 30
    (alarm,) = (line for line in ground.lines if line.action == "channel_paused")
    assert (alarm.level, alarm.particulars["channel"]) == ("error", "one")
    ground.database.execute("update fencepost.unregistered set at = at - interval '1 hour'")
    assert ground.rows("select * from fencepost.unregistered()") == []


def test_one_bad_token_among_others_is_an_event_of_its_own(ground: Ground) -> None:
    """Three rows, [ok, gone, ok]: three sends, one event, and nothing is sent twice."""
    provider = Provider(
        answer=lambda token: (
            Unregistered("BadDeviceToken", guarded=True) if token == "bad" else Delivered()
        )
    )
    ground.ways.by_name = {"one": provider, "two": Provider()}
    for token in ("first", "bad", "last"):
        ground.enqueue("one", token)
    ground.tick()
    assert ground.tick().counts[Count.CLAIMED] == 0
    assert sorted(provider.reached) == ["bad", "first", "last"]
    ground.database.execute("update fencepost.unregistered set at = at - interval '1 hour'")
    assert ground.rows("select recipient from fencepost.unregistered()") == [("bad",)]


def test_what_always_fails_is_dead_after_exactly_as_many_attempts_as_allowed(
    ground: Ground,
) -> None:
    """D16: the count lives with the claim, and no restart of the worker forgets it."""
    ground.database.execute(
        "update fencepost.channel set policy = '{\"attempts_max\": 5}' where name = 'two'"
    )
    failing = Provider(answer=lambda recipient: Failed("answered 503"))
    ground.ways.by_name = {"one": Provider(), "two": failing}
    ground.enqueue("two", "somebody")
    for _ in range(8):
        ground.tick()
        ground.database.execute("update fencepost.queue set due_at = now()")
    assert len(failing.reached) == 5
    assert ground.rows("select kind::text, reason, attempts from fencepost.closed") == [
        ("dead", "attempts_exhausted", 5)
    ]


def test_after_a_resume_nothing_stale_is_sent(ground: Ground) -> None:
    """D39: a channel stood for long; what expired meanwhile is closed, and the rest goes."""
    sender = Provider()
    ground.ways.by_name = {"one": sender, "two": Provider()}
    ground.database.execute("select fencepost.channel_pause('one', 'keys', null)")
    ground.enqueue("one", "stale", 5)
    ground.enqueue("one", "live", 2)
    ground.database.execute(
        "update fencepost.notification set expires_at = now() where recipient = 'stale'"
    )
    ground.tick()
    assert sender.reached == []
    ground.database.execute("select fencepost.channel_resume('one')")
    ground.tick()
    assert sender.reached == ["live", "live"]
    kinds = "select kind::text, count(*) from fencepost.closed group by kind order by 1"
    assert sorted(ground.rows(kinds)) == [("delivered", 2), ("expired", 5)]


def test_a_throttle_stops_the_whole_channel_for_every_run_and_burns_nothing(
    ground: Ground,
) -> None:
    """D48: the first of a hundred is answered 429 with 30 seconds; ten were under way, and the next run sends none."""
    throttled = Provider(answer=lambda recipient: Throttled("answered 429", 30.0))
    ground.ways.by_name = {"one": throttled, "two": Provider()}
    ground.enqueue("one", "somebody", 100)
    ground.enqueue("two", "else", 3)
    summary = ground.tick()
    assert summary.counts[Count.DELIVERED] == 3
    assert 1 <= len(throttled.reached) <= 10
    reached = len(throttled.reached)
    ground.tick()
    assert len(throttled.reached) == reached
    assert ground.rows("select max(attempts), count(*) from fencepost.queue") == [(0, 100)]
    assert list(ground.paused()) == ["one"]
