"""Whole runs of the real worker on a real server, without a network: the sender is a fake that does as a test says."""

import itertools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from fencepost.core.access import Database
from fencepost.core.budget import Timing
from fencepost.core.channel import Channel
from fencepost.core.line import Line
from fencepost.core.notification import Claimed
from fencepost.core.reply import Reply
from fencepost.core.tally import Count, Summary
from fencepost.ports import Access, Sender, StoreFailed
from fencepost.settings import Settings
from fencepost.store.postgres import PostgresStore
from fencepost.worker import Parts, Worker
from tests.engine.fakes import ACCEPTED, FakeSender
from tests.store.guarded import PASSWORD, Guarded

SHORT = Timing(
    send_timeout_seconds=1.0,
    settle_reserve_seconds=1.0,
    lease_seconds=4.0,
    exchange_timeout_seconds=1.0,
)
CHANNEL = """
insert into fencepost.installation (name) values ('test');
insert into fencepost.channel (name, sender, on_uncertain) values ('way', 'fake', 'hold')"""
ENQUEUE = "select fencepost.enqueue('way', 'recipient-secret', '{\"title\": \"payload-secret\"}', dedupe_key => %s)"
NUMBERS = itertools.count()


@dataclass
class OneSender:
    """Every channel goes out by the one fake."""

    fake: FakeSender

    def sender(self, channel: Channel) -> Sender:
        return self.fake

    async def wake(self) -> None: ...

    async def close(self) -> None: ...


@dataclass
class Ticker:
    """A warm worker with a fake for its sender, and what it said in its last tick."""

    sender: FakeSender = field(default_factory=FakeSender)
    lines: list[Line] = field(default_factory=list)
    worker: Worker | None = None

    def on(self, access: str | Access) -> Worker:
        """A cold worker that reaches the database so."""
        self.end()
        parts = Parts(
            store=PostgresStore(access, connect_timeout_seconds=1.0, exchange_timeout_seconds=1.0),
            senders=OneSender(self.sender),
            lines=self.lines.append,
        )
        settings = Settings(database=Database(), installation="test", timing=SHORT)
        self.worker = Worker(settings, parts)
        return self.worker

    def tick(self, seconds: float = 6.0) -> Summary:
        assert self.worker is not None
        self.lines.clear()
        return self.worker.deliver(remaining_seconds=seconds, correlation="tick")

    def failed_tick(self, seconds: float = 6.0) -> StoreFailed:
        """A tick on a database that lets no run begin. It leaves the worker fit for the next one."""
        try:
            self.tick(seconds)
        except StoreFailed as failed:
            assert self.worker is not None
            assert not self.worker.spoilt
            return failed
        raise AssertionError("the run began")

    def end(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def troubles(self) -> list[Line]:
        """What a run said beside its work."""
        work = {"claimed", "delivered", "run_ended", "leases_renewed"}
        return [line for line in self.lines if line.action not in work]

    def only_trouble(self) -> Line:
        """The one line a run said beside its work, and no secret in anything it said."""
        (line,) = self.troubles()
        for secret in ("hunter2", "payload-secret", "recipient-secret"):
            assert secret not in repr(self.lines)
        return line


@dataclass
class Bench:
    """A database of one test's own on a guarded server, and a worker for it."""

    guarded: Guarded
    name: str
    ticker: Ticker = field(default_factory=Ticker)
    admin: psycopg.Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connect()
        self.admin.execute(CHANNEL)

    def connect(self) -> None:
        url = make_conninfo(self.guarded.server.url, dbname=self.name)
        self.admin = psycopg.connect(url, autocommit=True)

    def url(self, password: str = PASSWORD) -> str:
        """The worker's way in."""
        return self.guarded.url(dbname=self.name, password=password)

    def enqueue(self, count: int) -> None:
        for _ in range(count):
            self.admin.execute(ENQUEUE, [f"k{next(NUMBERS)}"])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.admin.execute(query.encode()).fetchall()

    def assert_waiting(self, count: int) -> None:
        """Nothing was claimed, no attempt was spent."""
        free = "select count(*), coalesce(max(fence), 0), coalesce(max(attempts), 0) from fencepost.queue"
        assert self.rows(free) == [(count, 0, 0)]

    def assert_held(self, count: int) -> None:
        """A run that has ended without a word still has them, until its lease is over."""
        held = "select fence, attempts, count(*) from fencepost.queue where run_id <> fencepost.nobody() group by 1, 2"
        assert self.rows(held) == [(1, 1, count)]

    def assert_delivered_at_once(self, count: int) -> None:
        """All of them, each by its first attempt, and nothing is held."""
        closed = (
            "select kind::text, fence, attempts, count(*) from fencepost.closed group by 1, 2, 3"
        )
        assert self.rows(closed) == [("delivered", 1, 1, count)]
        assert self.rows("select count(*) from fencepost.queue") == [(0,)]
        assert len(self.ticker.sender.begun) == count


@contextmanager
def bench_on(guarded: Guarded) -> Iterator[Bench]:
    bench = Bench(guarded, guarded.database())
    try:
        yield bench
    finally:
        bench.ticker.end()
        bench.admin.close()


def delivered(summary: Summary) -> int:
    return summary.counts[Count.DELIVERED]


def first_time(do: Callable[[], object]) -> Callable[[], None]:
    """The same, but only when it is first called."""
    done: list[object] = []

    def once() -> None:
        if not done:
            done.append(None)
            do()

    return once


def in_mid_send(do: Callable[[], object]) -> Callable[[Claimed], Coroutine[object, object, Reply]]:
    """A sender's hook: something happens while the message is on its way; then it is accepted."""

    async def send(claimed: Claimed) -> Reply:
        do()
        return ACCEPTED

    return send
