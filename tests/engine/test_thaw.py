"""A stalled run that thaws reads the replies that lie in its sockets before it stops anything (G8)."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from fencepost import attempt as module
from fencepost.attempt import attempt
from fencepost.core.budget import Budget, Timing
from fencepost.core.exchange import Exchange, Exchanged, Verdict, Word
from fencepost.core.notification import AttemptOutcome, Claimed
from fencepost.core.outcome import Delivered, NotSent
from fencepost.core.reply import Phase, Reply
from fencepost.core.step import Cancel, Command, Event, Finish, Replied, Send, Started, Tick
from fencepost.deadline import Deadline, stop
from fencepost.engine import Ended, run_once
from tests.engine.fakes import (
    ACCEPTED,
    BOUND_SECONDS,
    CHANNEL,
    FakeSender,
    Script,
    Stage,
    channel,
    row,
    start,
)

TIMING = Timing(
    send_timeout_seconds=0.3,
    settle_reserve_seconds=0.4,
    lease_seconds=20.0,
    exchange_timeout_seconds=1.0,
)
LAYERS = 5  # turns of the loop between a socket and a reply: a protocol, a connection, a stream …


@dataclass
class Pairs:
    """A socket for each send; the answer of the far end comes while the loop stands still."""

    expected: int = 1
    thaw_at: float = 0.0
    far: list[socket.socket] = field(default_factory=list)
    all: list[socket.socket] = field(default_factory=list)

    async def send(self, claimed: Claimed) -> Reply:
        near, far = socket.socketpair()
        near.setblocking(False)
        self.all += [near, far]
        self.far.append(far)
        loop = asyncio.get_running_loop()
        if len(self.far) == self.expected:
            loop.call_soon(self.stand_still)  # once this send waits for its answer too
        await loop.sock_recv(near, 1)
        for _ in range(LAYERS):
            await asyncio.sleep(0)
        return ACCEPTED

    def stand_still(self) -> None:
        for one in self.far:
            one.send(b"!")
        loop = asyncio.get_running_loop()
        while loop.time() <= self.thaw_at:
            pass


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    pairs = Pairs()
    yield pairs
    for one in pairs.all:
        one.close()


def attempted(sender: FakeSender, *, timeout: float) -> Replied:
    async def whole() -> Replied:
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(BOUND_SECONDS):
            return await attempt(sender, row(), timeout_seconds=timeout, clock=clock)

    return asyncio.run(whole())


def test_the_guard_of_an_attempt_comes_after_the_answer(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.1)

    async def send(claimed: Claimed) -> Reply:
        pairs.thaw_at = asyncio.get_running_loop().time() + 0.3
        return await pairs.send(claimed)

    assert attempted(FakeSender(on_send=send), timeout=0.1).outcome == Delivered("reference-1")


def test_the_guard_of_an_attempt_comes_after_the_senders_own_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sender knows how far it got; the guard does not."""
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.1)

    async def knows(claimed: Claimed) -> Reply:
        loop = asyncio.get_running_loop()
        began = loop.time()
        loop.call_soon(Pairs(thaw_at=began + 0.3).stand_still)
        try:
            async with Deadline(began + 0.1):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        return Reply(phase=Phase.NOT_SENT, error="never connected")

    sender = FakeSender(on_send=knows, on_classify=lambda reply: NotSent(reply.error))
    assert attempted(sender, timeout=0.1).outcome == NotSent("never connected")


def test_what_lies_in_the_socket_is_read_before_a_send_is_stopped(pairs: Pairs) -> None:
    stage = Stage(sender=FakeSender(on_send=pairs.send))

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                pairs.thaw_at = stage.clock() + 0.1
                machine.wakes.append(stage.clock() + 0.05)
                return [Send(row(1), 10.0)]
            case Tick():
                return [Cancel(row(1).held)]
            case _:
                return [Finish()]

    machine = Script(answer)

    async def whole() -> None:
        async with asyncio.timeout(BOUND_SECONDS):
            await stage.drive(machine).to_the_end(Started((), {}))

    asyncio.run(whole())
    assert [reply.outcome for reply in machine.replies] == [Delivered("reference-1")]


def a_run(pairs: Pairs, said: list[Word], *, rows: int, thaws_before_end: float) -> Ended:
    """One run with all its rows in the air, that stands still until so long before its hard end."""
    pairs.expected = rows
    stage = Stage(sender=FakeSender(on_send=pairs.send), timing=TIMING)
    stage.store.channels = (channel(),)
    stage.senders.known = {CHANNEL: stage.sender}

    async def exchange(words: Exchange) -> Exchanged:
        said.extend(words.settle)
        claimed = tuple(row(number) for number in range(1, rows + 1)) if words.seq == 1 else ()
        verdicts = (Verdict.APPLIED,) * len(words.settle)
        return Exchanged(verdicts=verdicts, claimed=claimed if words.claim else ())

    stage.store.on_exchange = exchange

    async def whole() -> Ended:
        budget = Budget(timing=TIMING, hard_end=stage.clock() + 1.0)
        pairs.thaw_at = budget.hard_end - thaws_before_end
        async with asyncio.timeout(BOUND_SECONDS):
            return await run_once(stage.around(), start=start(), budget=budget)

    return asyncio.run(whole())


def test_a_run_that_thaws_after_its_hard_stop_says_what_was_answered(pairs: Pairs) -> None:
    said = list[Word]()
    ended = a_run(pairs, said, rows=3, thaws_before_end=0.3)
    assert ended.unsaid == ()
    assert [(word.id, word.outcome) for word in said] == [
        (number, AttemptOutcome.DELIVERED) for number in (1, 2, 3)
    ]


def test_a_run_that_thaws_when_it_is_over_takes_along_what_was_answered(pairs: Pairs) -> None:
    """No exchange fits any more: what it knows leaves as evidence, all of it."""
    said = list[Word]()
    ended = a_run(pairs, said, rows=3, thaws_before_end=0.05)
    assert said == []
    assert [(unsaid.held.id, unsaid.outcome) for unsaid in ended.unsaid] == [
        (number, "delivered") for number in (1, 2, 3)
    ]


async def turns_until_stopped(asked: bool, *, overdue: bool) -> int:
    """How often the loop turns for a send that nobody answers, once it must stop."""
    loop = asyncio.get_running_loop()
    turned = 0

    async def waits() -> None:
        nonlocal turned
        async with Deadline(loop.time() + (0.05 if overdue else 60.0), asked=lambda: asked):
            if overdue:
                Pairs(thaw_at=loop.time() + 0.1).stand_still()
            else:
                loop.call_soon(stop, waiting)
            while True:
                turned += 1
                await asyncio.sleep(0)

    waiting = asyncio.ensure_future(waits())
    async with asyncio.timeout(BOUND_SECONDS):
        await asyncio.gather(waiting, return_exceptions=True)
    return turned


@pytest.mark.parametrize("overdue", [True, False], ids=["overdue", "stopped"])
def test_a_request_that_has_not_left_gets_no_turns_to_leave(overdue: bool) -> None:
    """A row lost in a stall may be in somebody else's hands by now."""
    unasked = asyncio.run(turns_until_stopped(False, overdue=overdue))
    asked = asyncio.run(turns_until_stopped(True, overdue=overdue))
    assert (unasked <= 3, asked > 5) == (True, True), (unasked, asked)
