"""A store, senders and a machine that do as a test says, and write down what was asked of them."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from fencepost.core.budget import Budget, Timing
from fencepost.core.channel import AttemptPolicy, Channel, Facility
from fencepost.core.exchange import Exchange, Exchanged, RunStart, RunStarted
from fencepost.core.fact import Fact
from fencepost.core.notification import (
    ChannelId,
    Claimed,
    Fence,
    NotificationId,
    OnUncertain,
    RunId,
)
from fencepost.core.outcome import Delivered, Failed, Outcome
from fencepost.core.reply import Phase, Reply
from fencepost.core.step import Command, Event, Replied
from fencepost.drive import Drive, Surroundings
from fencepost.ports import Prepared, Sender, SenderUnavailable

RUN = RunId(UUID("11111111-1111-4111-8111-111111111111"))
CHANNEL = ChannelId(1)
BOUND_SECONDS = 60.0  # a test that waits longer has failed, on any machine
ACCEPTED = Reply(phase=Phase.ANSWERED, status=200)


def row(number: int = 1, **changes: Any) -> Claimed:
    """One claimed row, fresh and without doubt."""
    plain = Claimed(
        id=NotificationId(number),
        fence=Fence(1),
        channel=CHANNEL,
        recipient="recipient-secret",
        payload={"title": "payload-secret"},
        idempotency_key=UUID(int=number),
        attempts=1,
        interruptions=0,
        doubt=False,
        age_seconds=1.0,
        first_attempt_age_seconds=None,
        first_digest=None,
        evidence=None,
        expires_in_seconds=None,
        lease_left_seconds=20.0,
        on_uncertain=None,
    )
    return replace(plain, **changes)


def channel(number: int = 1, **changes: Any) -> Channel:
    plain = Channel(
        id=ChannelId(number),
        name=f"channel-{number}",
        sender="fake",
        settings={},
        secret_reference=None,
        slots=10,
        rate_per_second=None,
        on_uncertain=OnUncertain.RESEND,
        policy=AttemptPolicy(),
        revision=1,
        paused_for_seconds=0.0,
        pause_reason=None,
    )
    return replace(plain, **changes)


def start(**changes: Any) -> RunStart:
    plain = RunStart(
        run=RUN, installation="test", version=1, invocation="tick-1", deadline_in_seconds=60.0
    )
    return replace(plain, **changes)


@dataclass
class FakeSender:
    """Every hook can be replaced; by default everything is delivered at once."""

    facility: Facility = field(default_factory=Facility)
    on_prepare: Callable[[Claimed], Prepared | Outcome] = lambda claimed: Prepared(
        bytes(16), claimed.id
    )
    on_send: Callable[[Claimed], Awaitable[Reply]] | None = None
    on_classify: Callable[[Reply], Outcome] = lambda reply: (
        Delivered("reference-1") if reply.status == 200 else Failed(f"status {reply.status}")
    )
    on_ask: Callable[[Claimed], Awaitable[Outcome | None]] | None = None
    begun: list[NotificationId] = field(default_factory=list)

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        return self.on_prepare(claimed)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        self.begun.append(claimed.id)
        return ACCEPTED if self.on_send is None else await self.on_send(claimed)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return self.on_classify(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None if self.on_ask is None else await self.on_ask(claimed)


@dataclass
class FakeSenders:
    """Senders by channel; `broken` raises what it holds."""

    known: dict[ChannelId, Sender] = field(default_factory=dict)
    broken: dict[ChannelId, Exception] = field(default_factory=dict)
    woken: int = 0
    closed: int = 0

    def sender(self, channel: Channel) -> Sender:
        if channel.id in self.broken:
            raise self.broken[channel.id]
        if channel.id not in self.known:
            raise SenderUnavailable(f"unknown sender kind {channel.sender!r}")
        return self.known[channel.id]

    async def wake(self) -> None:
        self.woken += 1

    async def close(self) -> None:
        self.closed += 1


@dataclass
class FakeStore:
    """Answers from hooks and remembers the calls in order."""

    on_has_work: Callable[[], Awaitable[bool]] | None = None
    on_start: Callable[[RunStart], Awaitable[RunStarted]] | None = None
    on_exchange: Callable[[Exchange], Awaitable[Exchanged]] | None = None
    channels: tuple[Channel, ...] = ()
    calls: list[str] = field(default_factory=list)

    async def has_work(self, channels: tuple[str, ...] = ()) -> bool:
        self.calls.append("has_work")
        return True if self.on_has_work is None else await self.on_has_work()

    async def start_run(self, start: RunStart) -> RunStarted:
        self.calls.append("start_run")
        if self.on_start is not None:
            return await self.on_start(start)
        return RunStarted(channels=self.channels)

    async def exchange(self, exchange: Exchange) -> Exchanged:
        self.calls.append("exchange")
        return Exchanged() if self.on_exchange is None else await self.on_exchange(exchange)

    async def wake(self) -> None:
        self.calls.append("wake")

    async def close(self) -> None:
        self.calls.append("close")


@dataclass
class Script:
    """A machine whose answers a test writes: the event in, the commands out. Keeps what it was told."""

    answer: Callable[[Event], list[Command]]
    wakes: list[float | None] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    instants: list[float] = field(default_factory=list)

    def step(self, event: Event, now: float) -> list[Command]:
        self.events.append(event)
        self.instants.append(now)
        return self.answer(event)

    def wake_at(self) -> float | None:
        return self.wakes[-1] if self.wakes else None

    @property
    def replies(self) -> list[Replied]:
        return [event for event in self.events if isinstance(event, Replied)]


@dataclass
class Stage:
    """Everything around a drive, ready to be changed by a test."""

    store: FakeStore = field(default_factory=FakeStore)
    sender: FakeSender = field(default_factory=FakeSender)
    senders: FakeSenders = field(default_factory=FakeSenders)
    timing: Timing = field(default_factory=Timing)
    left_seconds: float = 60.0
    facts: list[Fact] = field(default_factory=list)

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

    def around(self) -> Surroundings:
        rolls = itertools.repeat(0.5)
        return Surroundings(
            store=self.store,
            senders=self.senders,
            clock=self.clock,
            roll=lambda: next(rolls),
            report=self.facts.append,
        )

    def budget(self) -> Budget:
        return Budget(timing=self.timing, hard_end=self.clock() + self.left_seconds)

    def drive(self, machine: Script) -> Drive:
        return Drive(machine, self.around(), {CHANNEL: self.sender}, self.budget())
