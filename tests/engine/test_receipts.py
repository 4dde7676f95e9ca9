"""After a run, receipts: asked for in the time that is left, page after page, and harmless whatever breaks."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from fencepost.core.access import Database
from fencepost.core.channel import Channel
from fencepost.core.exchange import Failure
from fencepost.core.line import Level, Line
from fencepost.core.notification import ChannelId, Fence, NotificationId
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Outcome,
    Rejected,
    Uncertain,
    Unregistered,
)
from fencepost.core.receipt import ReceiptDue, ReceiptTold
from fencepost.core.tally import Ending, Summary
from fencepost.ports import Receipts, StoreFailed
from fencepost.receipts import PAGE, SECONDS_MIN, AskForReceipts
from fencepost.settings import Settings
from fencepost.worker import Parts, Worker
from tests.engine.fakes import FakeSender, FakeSenders, FakeStore, channel
from tests.engine.test_pruning import nothing_due
from tests.engine.test_worker import SHORT

Found = Mapping[str, Outcome] | None


def due(number: int, channel: int = 1) -> ReceiptDue:
    return ReceiptDue(
        id=NotificationId(number),
        fence=Fence(1),
        channel=ChannelId(channel),
        reference=f"T-{number}",
    )


@dataclass
class FakeBook:
    """Gives these pages, one after the other, and keeps what it is told."""

    pages: list[Sequence[ReceiptDue]] = field(default_factory=list)
    asked: list[tuple[tuple[str, ...], int]] = field(default_factory=list)
    told: list[ReceiptTold] = field(default_factory=list)
    on_tell: Callable[[], Awaitable[None]] | None = None
    on_take: Callable[[], Awaitable[None]] | None = None

    async def take(self, channels: tuple[str, ...], limit: int) -> tuple[ReceiptDue, ...]:
        self.asked.append((channels, limit))
        if self.on_take is not None:
            await self.on_take()
        return tuple(self.pages.pop(0)) if self.pages else ()

    async def channels(self, ids: Sequence[ChannelId]) -> tuple[Channel, ...]:
        return tuple(channel(id) for id in ids)

    async def tell(self, told: Sequence[ReceiptTold]) -> int:
        if self.on_tell is not None:
            await self.on_tell()
        self.told.extend(told)
        return len(told)


@dataclass
class Telling(FakeSender):
    """A sender whose provider has receipts."""

    receipts_max: int = 100
    on_receipts: Callable[[Sequence[str]], Awaitable[Found]] | None = None
    questions: list[Sequence[str]] = field(default_factory=list)

    async def receipts(self, references: Sequence[str], *, timeout_seconds: float) -> Found:
        self.questions.append(references)
        if self.on_receipts is not None:
            return await self.on_receipts(references)
        return {reference: Delivered(reference) for reference in references}


@dataclass
class Bench:
    book: FakeBook = field(default_factory=FakeBook)
    senders: FakeSenders = field(default_factory=FakeSenders)
    seconds: float = 4.0

    def ask(self) -> Line | None:
        async def within() -> Line | None:
            now = asyncio.get_running_loop().time
            asking = AskForReceipts(book=self.book, senders=self.senders, channels=(), clock=now)
            return await asking.until(now() + self.seconds)

        return asyncio.run(within())

    def with_sender(self, sender: FakeSender, number: int = 1) -> "Bench":
        self.senders.known[ChannelId(number)] = sender
        return self


def test_where_nothing_is_due_one_question_is_all() -> None:
    bench = Bench()
    assert bench.ask() is None
    assert bench.book.asked == [((), PAGE)]


def test_page_after_page_until_there_is_none() -> None:
    bench = Bench(FakeBook([[due(1), due(2)], [due(3)]])).with_sender(Telling())
    line = bench.ask()
    assert line == Line(Level.INFO, "receipts", {"asked": 3, "delivered": 3, "silent": 0})
    assert [each.due.id for each in bench.book.told] == [1, 2, 3]
    assert len(bench.book.asked) == 3


def test_questions_are_as_large_as_the_sender_takes_and_few_at_once() -> None:
    most, now = 0, 0

    async def slowly(references: Sequence[str]) -> Found:
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1
        return {}

    sender = Telling(receipts_max=10, on_receipts=slowly)
    bench = Bench(FakeBook([[due(n) for n in range(95)]])).with_sender(sender)
    bench.ask()
    assert [len(each) for each in sender.questions] == [*[10] * 9, 5]
    assert most == 6


def test_each_channel_is_asked_by_its_own_sender() -> None:
    one, two = Telling(), Telling()
    book = FakeBook([[due(1, 1), due(2, 2), due(3, 1)]])
    Bench(book).with_sender(one, 1).with_sender(two, 2).ask()
    assert (one.questions, two.questions) == ([["T-1", "T-3"]], [["T-2"]])
    assert len(book.told) == 3


def test_what_a_receipt_says_is_counted_and_a_refusal_stands_out() -> None:
    answers: dict[str, Outcome] = {
        "T-1": Delivered("T-1"),
        "T-2": Unregistered("receipt: DeviceNotRegistered"),
        "T-3": Rejected("receipt: MessageTooBig"),
        "T-4": CredentialFailure("receipt: InvalidCredentials"),
        "T-5": Uncertain("receipt: ProviderError"),
        "stranger": Delivered("stranger"),
    }

    async def told(references: Sequence[str]) -> Found:
        return answers

    book = FakeBook([[due(n) for n in range(1, 7)]])
    line = Bench(book).with_sender(Telling(on_receipts=told)).ask()
    assert line is not None
    assert line.level is Level.WARNING
    assert line.particulars == {
        "asked": 6,
        "delivered": 1,
        "unregistered": 1,
        "credentials": 1,
        "refused": 1,
        "unknown": 1,
        "silent": 1,
    }
    assert [each.due.id for each in book.told] == [1, 2, 3, 4, 5]


async def broken(references: Sequence[str]) -> Found:
    raise ValueError("quotes a token")


async def unanswered(references: Sequence[str]) -> Found:
    return None


async def stopped(references: Sequence[str]) -> Found:
    raise asyncio.CancelledError


async def stalled(references: Sequence[str]) -> Found:
    await asyncio.Event().wait()
    return None


@pytest.mark.parametrize("trouble", [broken, unanswered, stopped, stalled])
def test_one_that_breaks_or_stalls_takes_no_other_along(
    trouble: Callable[[Sequence[str]], Awaitable[Found]],
) -> None:
    """G9: the other channel's answers are heard and told."""
    book = FakeBook([[due(1, 1), due(2, 2)]])
    bench = Bench(book, seconds=SECONDS_MIN + 0.1)
    bench.with_sender(Telling(on_receipts=trouble), 1).with_sender(Telling(), 2)
    line = bench.ask()
    assert [each.due.id for each in book.told] == [2]
    assert line is not None
    assert (line.particulars["delivered"], line.particulars["silent"]) == (1, 1)
    assert "token" not in str(line.particulars)
    assert ("bug" in line.particulars) is (trouble is broken)


def test_a_channel_that_cannot_be_asked_any_more_is_left_alone() -> None:
    """Its sender changed to one without receipts, or has lost its credentials."""
    book = FakeBook([[due(1, 1), due(2, 2), due(3, 3)]])
    bench = Bench(book).with_sender(FakeSender(), 1).with_sender(Telling(), 3)
    line = bench.ask()
    assert line is not None
    assert line.particulars == {"asked": 3, "delivered": 1, "silent": 2}


def test_a_registry_with_a_bug_is_no_more_than_silence() -> None:
    bench = Bench(FakeBook([[due(1, 1), due(2, 2)]])).with_sender(Telling(), 2)
    bench.senders.broken[ChannelId(1)] = RuntimeError("no")
    line = bench.ask()
    assert line is not None
    assert (line.particulars["delivered"], line.particulars["silent"]) == (1, 1)
    assert str(line.particulars["bug"]).startswith("RuntimeError at fakes.py:")


@pytest.mark.parametrize("seconds", [-1.0, 0.0, SECONDS_MIN - 0.1])
def test_without_time_nothing_is_taken(seconds: float) -> None:
    """What is taken has used up one of its three questions."""
    bench = Bench(FakeBook([[due(1)]]), seconds=seconds).with_sender(Telling())
    assert bench.ask() is None
    assert bench.book.asked == []


async def away() -> None:
    raise StoreFailed(Failure.UNKNOWN, "the server is away")


async def hang() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("trouble", [away, hang])
@pytest.mark.parametrize("when", ["on_take", "on_tell"])
def test_a_database_that_goes_away_is_told_and_harms_nothing(
    when: str, trouble: Callable[[], Awaitable[None]]
) -> None:
    bench = Bench(FakeBook([[due(1)]]), seconds=SECONDS_MIN + 0.1).with_sender(Telling())
    setattr(bench.book, when, trouble)
    line = bench.ask()
    assert line is not None
    assert (line.level, line.action) == (Level.WARNING, "receipts_not_asked")


def test_a_sender_says_by_what_it_has_whether_it_can_be_asked() -> None:
    assert isinstance(Telling(), Receipts)
    assert not isinstance(FakeSender(), Receipts)


# --- in a worker's tick


@dataclass
class Tick:
    book: FakeBook
    store: FakeStore = field(default_factory=lambda: FakeStore(on_exchange=nothing_due))
    lines: list[Line] = field(default_factory=list)

    def run(self, seconds: float = 3.0) -> Summary:
        senders = FakeSenders(known={ChannelId(1): Telling()})
        asking = AskForReceipts(
            book=self.book, senders=senders, channels=("mine",), clock=time.monotonic
        )
        parts = Parts(store=self.store, senders=senders, lines=self.lines.append, receipts=asking)
        settings = Settings(database=Database(), installation="test", timing=SHORT)
        with Worker(settings, parts) as worker:
            return worker.deliver(remaining_seconds=seconds, correlation="tick")

    def told(self, action: str) -> list[Line]:
        return [line for line in self.lines if line.action == action]


@pytest.mark.parametrize("work", [True, False], ids=["a run", "an idle tick"])
def test_receipts_are_asked_for_after_the_run_and_on_an_idle_tick_too(work: bool) -> None:
    async def has_work() -> bool:
        return work

    tick = Tick(FakeBook([[due(1)]]))
    tick.store.on_has_work = has_work
    assert tick.run().ended is (Ending.DRAINED if work else Ending.IDLE)
    assert tick.book.asked[0] == (("mine",), PAGE)
    (line,) = tick.told("receipts")
    assert line.particulars["delivered"] == 1
    assert "run_id" in line.particulars
    actions = [each.action for each in tick.lines]
    assert actions.index("receipts") > actions.index("run_ended")


def test_a_tick_without_time_asks_for_none() -> None:
    tick = Tick(FakeBook([[due(1)]]))
    tick.run(seconds=0.0)
    assert tick.book.asked == []
