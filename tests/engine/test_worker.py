"""The worker of one process: what a run could not say leaves another way, and one loop serves all its runs."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fencepost.core.access import Database
from fencepost.core.budget import Timing
from fencepost.core.exchange import Exchange, Exchanged, Failure, GateAnswer, RunStart, RunStarted
from fencepost.core.line import Line
from fencepost.core.notification import Claimed
from fencepost.core.reply import Reply
from fencepost.core.tally import Count, Ending
from fencepost.ports import StoreFailed
from fencepost.settings import Settings, SettingsError
from fencepost.telemetry import Numbers
from fencepost.worker import CountPaused, Parts, Worker
from tests.engine.fakes import ACCEPTED, CHANNEL, FakeSender, FakeSenders, FakeStore, channel, row

SHORT = Timing(send_timeout_seconds=0.1, settle_reserve_seconds=0.2, exchange_timeout_seconds=0.05)
OPEN = GateAnswer(revision=1, paused_for_seconds=0.0, reason=None, token_in_seconds=0.0)


@dataclass
class Bench:
    """A worker on fakes, and what it said."""

    store: FakeStore = field(default_factory=FakeStore)
    sender: FakeSender = field(default_factory=FakeSender)
    senders: FakeSenders = field(default_factory=FakeSenders)
    lines: list[Line] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    count_paused: CountPaused | None = None

    def take(self, bodies: Sequence[str], within_seconds: float) -> Sequence[str]:
        self.queue.extend(bodies)
        self.seconds.append(within_seconds)
        return bodies

    def worker(self) -> Worker:
        self.senders.known[CHANNEL] = self.sender
        settings = Settings(
            database=Database(), installation="test", channels=("way",), timing=SHORT
        )
        parts = Parts(
            store=self.store,
            senders=self.senders,
            lines=self.lines.append,
            say_elsewhere=self.take,
            metrics=lambda numbers, _: self.numbers.append(numbers),
            count_paused=self.count_paused,
        )
        return Worker(settings, parts)

    def actions(self) -> list[str]:
        return [line.action for line in self.lines]


async def idle() -> bool:
    return False


@pytest.mark.parametrize("remaining_seconds", [0.0, -5.0])
def test_no_time_left_is_a_value_and_claims_nothing(remaining_seconds: float) -> None:
    bench = Bench()
    with bench.worker() as worker:
        summary = worker.deliver(remaining_seconds=remaining_seconds, correlation="tick")
    assert summary.ended is Ending.NO_TIME
    assert bench.store.calls == ["close"]


def test_an_unknown_remaining_time_is_a_configuration_error() -> None:
    bench = Bench()
    with (
        bench.worker() as worker,
        pytest.raises(SettingsError, match="left is unknown"),
    ):
        worker.deliver(remaining_seconds=None, correlation="tick")
    assert bench.store.calls == ["close"]


def test_a_run_says_who_it_is() -> None:
    bench = Bench()
    started: list[RunStart] = []

    async def start(start: RunStart) -> RunStarted:
        started.append(start)
        return RunStarted(channels=())

    bench.store.on_start = start
    with bench.worker() as worker:
        runs = [worker.deliver(remaining_seconds=5.0, correlation="tick").run for _ in range(2)]
    assert [str(one.run) for one in started] == runs
    assert runs[0] != runs[1], "a warm sandbox is another run each time"
    assert {(one.installation, one.invocation, one.channels) for one in started} == {
        ("test", "tick", ("way",))
    }


def test_warm_invocations_share_one_loop_and_leave_nothing_in_it() -> None:
    bench = Bench()
    loops: set[asyncio.AbstractEventLoop] = set()

    async def look() -> bool:
        assert asyncio.all_tasks() == {asyncio.current_task()}
        loops.add(asyncio.get_running_loop())
        return False

    bench.store.on_has_work = look
    with bench.worker() as worker:
        for _ in range(3):
            worker.deliver(remaining_seconds=5.0, correlation="tick")
    assert len(loops) == 1
    assert bench.senders.woken == 3
    assert bench.store.calls.count("wake") == 3
    assert (bench.senders.closed, bench.store.calls.count("close")) == (1, 1)


def test_a_run_that_may_not_begin_is_said_and_raised() -> None:
    bench = Bench()

    async def refuse(start: RunStart) -> RunStarted:
        raise StoreFailed(Failure.REFUSED, "this database belongs to production")

    bench.store.on_start = refuse
    with bench.worker() as worker, pytest.raises(StoreFailed):
        worker.deliver(remaining_seconds=5.0, correlation="tick")
    assert not worker.spoilt, "nothing had begun"
    assert bench.actions() == ["run_not_started"]


def test_a_run_that_broke_spoils_the_worker() -> None:
    bench = Bench()

    async def broken() -> bool:
        raise ZeroDivisionError

    bench.store.on_has_work = broken
    worker = bench.worker()
    with pytest.raises(ZeroDivisionError):
        worker.deliver(remaining_seconds=5.0, correlation="tick")
    assert worker.spoilt
    worker._runner.close()


async def three(channels: tuple[str, ...]) -> int:
    assert channels == ("way",)
    return 3


async def away(channels: tuple[str, ...]) -> int:
    raise StoreFailed(Failure.UNKNOWN, "away")


async def silent(channels: tuple[str, ...]) -> int:
    await asyncio.Event().wait()
    return 0


@pytest.mark.parametrize(("answer", "known"), [(three, 3), (away, None), (silent, None)])
def test_paused_channels_are_the_last_question_and_never_its_end(
    answer: CountPaused, known: int | None
) -> None:
    """A run that finds nothing due says that nothing is late: what waits behind a pause is seen only here."""
    bench = Bench(count_paused=answer)
    bench.store.on_has_work = idle
    with bench.worker() as worker:
        summary = worker.deliver(remaining_seconds=1.5, correlation="tick")
        assert summary.ended is Ending.IDLE
        assert not worker.spoilt
    assert bench.numbers[-1].paused_channels == known


def test_what_finds_no_database_leaves_as_evidence_and_as_log_lines() -> None:
    bench = Bench()
    bench.store.channels = (channel(),)
    due = [row(1), row(2)]

    async def once_then_away(words: Exchange) -> Exchanged:
        if not words.claim or not due:
            raise StoreFailed(Failure.AWAY, "no route")
        rows = tuple(due)
        due.clear()
        return Exchanged(gates={CHANNEL: OPEN}, claimed=rows)

    bench.store.on_exchange = once_then_away
    with bench.worker() as worker:
        summary = worker.deliver(remaining_seconds=0.6, correlation="tick")
    assert (summary.ended, summary.unsaid) == (Ending.UNSAID, 2)
    assert summary.counts[Count.DELIVERED] == 0, "nothing counts before the database said so"
    (body,) = bench.queue
    facts = json.loads(body)["facts"]
    assert [(fact["notification"], fact["outcome"]) for fact in facts] == [
        (1, "delivered"),
        (2, "delivered"),
    ]
    assert [fact["digest"] for fact in facts] == ["00" * 16] * 2
    assert 0 < bench.seconds[0] < 0.6, "there was time left to say it"
    unsaid = [line for line in bench.lines if line.action == "evidence_unsaid"]
    assert [line.particulars["evidence"] for line in unsaid] == [body]
    everything = repr(bench.lines) + body
    assert "payload-secret" not in everything
    assert "recipient-secret" not in everything


def test_a_send_that_will_not_stop_spoils_the_worker() -> None:
    bench = Bench()
    bench.store.channels = (channel(),)
    due = [row(1)]
    released = False

    async def exchange(words: Exchange) -> Exchanged:
        rows = tuple(due) if words.claim else ()
        due.clear()
        return Exchanged(gates={CHANNEL: OPEN}, claimed=rows)

    async def stubborn(claimed: Claimed) -> Reply:
        while not released:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
        return ACCEPTED

    bench.store.on_exchange = exchange
    bench.sender.on_send = stubborn
    worker = bench.worker()
    worker.deliver(remaining_seconds=0.6, correlation="tick")
    assert worker.spoilt
    released = True
    worker._runner.close()
