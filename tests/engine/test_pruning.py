"""After its last word a run lets go what is old, in what is left of its time; and it tells what it cannot send on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from fencepost.core.access import Database
from fencepost.core.channel import Skip
from fencepost.core.exchange import Exchange, Exchanged, Failure, GateAnswer
from fencepost.core.line import Line
from fencepost.core.notification import ChannelId, RunId
from fencepost.core.retention import Pruned
from fencepost.core.tally import Ending, Summary
from fencepost.ports import StoreFailed
from fencepost.settings import Settings
from fencepost.worker import PRUNE_ROWS, Parts, Worker
from tests.engine.fakes import CHANNEL, FakeSender, FakeSenders, FakeStore, channel
from tests.engine.test_worker import SHORT

OPEN = GateAnswer(revision=1, paused_for_seconds=0.0, reason=None, token_in_seconds=0.0)


async def nothing_due(exchange: Exchange) -> Exchanged:
    return Exchanged(gates={want.channel: OPEN for want in exchange.claim})


@dataclass
class Bench:
    """A worker whose pruning answers these steps, one after the other."""

    steps: list[Pruned] = field(default_factory=list)
    store: FakeStore = field(default_factory=lambda: FakeStore(on_exchange=nothing_due))
    senders: FakeSenders = field(default_factory=FakeSenders)
    lines: list[Line] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    on_prune: Callable[[], Awaitable[None]] | None = None
    on_note: Callable[[], Awaitable[None]] | None = None

    async def prune(self, limit: int) -> Pruned:
        self.asked.append(limit)
        if self.on_prune is not None:
            await self.on_prune()
        return self.steps.pop(0) if self.steps else Pruned(journal=0, runs=0, more=False)

    async def note_skips(self, run: RunId, skips: Sequence[Skip]) -> None:
        self.skips.extend(skips)
        if self.on_note is not None:
            await self.on_note()

    def tick(self) -> Summary:
        self.senders.known[CHANNEL] = FakeSender()
        parts = Parts(
            store=self.store,
            senders=self.senders,
            lines=self.lines.append,
            prune=self.prune,
            note_skips=self.note_skips,
        )
        settings = Settings(database=Database(), installation="test", timing=SHORT)
        with Worker(settings, parts) as worker:
            return worker.deliver(remaining_seconds=2.0, correlation="tick")

    def told(self, action: str) -> list[Line]:
        return [line for line in self.lines if line.action == action]


def away(failure: Failure) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise StoreFailed(failure, "the server is away")

    return fail


def test_a_run_prunes_in_steps_until_there_is_no_more() -> None:
    bench = Bench([Pruned(journal=900, runs=100, more=True), Pruned(journal=7, runs=1, more=False)])
    assert bench.tick().ended is Ending.DRAINED
    assert bench.asked == [PRUNE_ROWS, PRUNE_ROWS]
    (line,) = bench.told("pruned")
    assert (line.particulars["journal"], line.particulars["runs"]) == (907, 101)


def test_an_idle_tick_prunes_nothing() -> None:
    bench = Bench()

    async def idle() -> bool:
        return False

    bench.store.on_has_work = idle
    assert bench.tick().ended is Ending.IDLE
    assert bench.asked == []


def test_a_run_that_finds_nothing_old_says_nothing_of_it() -> None:
    bench = Bench()
    bench.tick()
    assert bench.asked == [PRUNE_ROWS]
    assert bench.told("pruned") == []


@pytest.mark.parametrize("failure", [Failure.UNKNOWN, Failure.REFUSED])
def test_what_cannot_be_pruned_harms_no_run(failure: Failure) -> None:
    bench = Bench(on_prune=away(failure))
    assert bench.tick().ended is Ending.DRAINED
    assert len(bench.told("not_pruned")) == 1


def test_a_step_that_never_ends_is_left_in_time() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    bench = Bench(on_prune=hang)
    assert bench.tick().ended is Ending.DRAINED
    assert len(bench.told("not_pruned")) == 1


def test_only_a_change_of_what_can_be_sent_on_is_written_down() -> None:
    bench = Bench()
    why = "unknown sender kind 'fake'"
    bench.store.channels = (
        channel(1),
        channel(2),
        channel(3, skipped=why),
        channel(1, name="again", skipped="no secret", revision=7),
    )
    assert bench.tick().skipped == ("channel-2", "channel-3")
    assert bench.skips == [Skip(ChannelId(2), 1, why), Skip(ChannelId(1), 7, None)]


def test_a_run_that_can_send_on_all_writes_nothing_of_it() -> None:
    bench = Bench()
    bench.store.channels = (channel(1),)
    bench.tick()
    assert bench.skips == []


def test_a_word_about_channels_that_cannot_be_said_stops_no_run() -> None:
    bench = Bench(on_note=away(Failure.UNKNOWN))
    bench.store.channels = (channel(1), channel(2))
    assert bench.tick().ended is Ending.DRAINED
