"""The drive carries out commands: one exchange at a time, each send on its own, nothing left behind."""

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from fencepost.core.budget import Timing
from fencepost.core.exchange import Exchange, Exchanged, Failure
from fencepost.core.fact import LeasesRenewed
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Delivered, NotSent, Uncertain
from fencepost.core.reply import Reply
from fencepost.core.step import (
    Answered,
    Ask,
    Asked,
    Cancel,
    Command,
    Event,
    Finish,
    Replied,
    Report,
    Say,
    Send,
    Started,
    Tick,
    Unanswered,
)
from fencepost.ports import StoreFailed
from tests.engine.fakes import ACCEPTED, BOUND_SECONDS, RUN, FakeSender, Script, Stage, row

BEGIN = Started((), {})
WORDS = Exchange(run=RUN, seq=1, lease_seconds=20.0)


def play(stage: Stage, machine: Script) -> Finish:
    """Drive it to its end; nothing of it may be left in the loop."""

    async def whole() -> Finish:
        async with asyncio.timeout(BOUND_SECONDS):
            finish = await stage.drive(machine).to_the_end(BEGIN)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "something survived the run"
        return finish

    return asyncio.run(whole())


def test_a_slow_send_holds_up_nobody() -> None:
    stage = Stage()
    gate = asyncio.Event()

    async def slow_first(claimed: Claimed) -> Reply:
        if claimed.id == 1:
            await gate.wait()
        return ACCEPTED

    stage.sender.on_send = slow_first

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                return [Send(row(1), 10.0), Send(row(2), 10.0), Say(WORDS)]
            case Replied(held) if held.id == 2:
                return [Say(WORDS)] if any(isinstance(e, Answered) for e in machine.events) else []
            case Answered() if len([e for e in machine.events if isinstance(e, Answered)]) == 1:
                return [Say(WORDS)] if machine.replies else []
            case Answered():
                gate.set()  # two exchanges and the other send went by while the first send hung
                return []
            case Replied():
                return [Finish()]
            case _:
                return []

    machine = Script(answer)
    play(stage, machine)
    assert [reply.held.id for reply in machine.replies] == [2, 1]
    assert stage.store.calls.count("exchange") == 2


def test_an_answer_and_each_failure_reach_the_machine() -> None:
    stage = Stage()
    answers: list[Exchanged | StoreFailed] = [
        Exchanged(),
        *(StoreFailed(failure, "why") for failure in Failure),
    ]

    async def exchange(words: Exchange) -> Exchanged:
        answer = answers[len(stage.store.calls) - 1]
        if isinstance(answer, StoreFailed):
            raise answer
        return answer

    stage.store.on_exchange = exchange
    machine = Script(
        lambda event: [Say(WORDS)] if len(machine.events) <= len(answers) else [Finish()]
    )
    play(stage, machine)
    heard = machine.events[1:]
    assert heard[0] == Answered(Exchanged())
    assert heard[1:] == [Unanswered(failure, "why") for failure in Failure]


def test_an_exchange_without_an_answer_is_unknown_after_its_timeout() -> None:
    stage = Stage(timing=Timing(exchange_timeout_seconds=0.02))
    stage.store.on_exchange = forever
    machine = Script(lambda event: [Say(WORDS)] if isinstance(event, Started) else [Finish()])
    play(stage, machine)
    assert machine.events[1] == Unanswered(Failure.UNKNOWN, "no answer in time")


def test_the_last_exchange_leaves_time_to_say_it_elsewhere() -> None:
    stage = Stage(timing=Timing(exchange_timeout_seconds=30.0), left_seconds=0.7)
    stage.store.on_exchange = forever
    machine = Script(lambda event: [Say(WORDS)] if isinstance(event, Started) else [Finish()])
    play(stage, machine)  # it keeps a quarter of the reserve of 2 s and gives up after 0.2 s
    assert isinstance(machine.events[1], Unanswered)
    assert machine.instants[1] - machine.instants[0] < 0.5


def test_a_tick_comes_when_the_machine_named_it_and_events_go_first() -> None:
    stage = Stage()

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                machine.wakes.append(stage.clock() + 0.01)
                return [Send(row(1), 1.0)]
            case Tick():
                return [Finish()]
            case _:
                return []

    machine = Script(answer)
    play(stage, machine)
    assert [type(event) for event in machine.events] == [Started, Replied, Tick]


def test_no_alarm_outlives_the_run() -> None:
    """A warm worker's loop goes on: an alarm in it would keep the run alive until it rings."""

    async def whole() -> None:
        stage, machine = Stage(), Script(lambda event: [])
        drive = stage.drive(machine)
        machine.wakes.append(stage.clock() + 3600.0)
        running = asyncio.create_task(drive.to_the_end(BEGIN))
        await _turns(5)  # it waits for its alarm now
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        gone = weakref.ref(drive)
        del drive, running
        await _turns(1)
        gc.collect()
        assert gone() is None

    asyncio.run(whole())


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_facts_are_reported() -> None:
    stage = Stage()
    fact = LeasesRenewed(count=1, lost=0)
    play(stage, Script(lambda event: [Report(fact), Finish()]))
    assert stage.facts == [fact]


def test_a_send_stopped_before_its_first_step_never_began() -> None:
    stage = Stage()
    claimed = row(1)
    machine = Script(
        lambda event: (
            [Send(claimed, 1.0), Cancel(claimed.held)] if isinstance(event, Started) else [Finish()]
        )
    )
    play(stage, machine)
    assert machine.replies[0].outcome == NotSent("stopped before it began")
    assert stage.sender.begun == []


def test_cancelling_what_is_not_in_flight_does_nothing() -> None:
    play(Stage(), Script(lambda event: [Cancel(row(9).held), Finish()]))


def test_a_row_asked_about_comes_back_as_asked_and_can_then_be_sent() -> None:
    stage = Stage()

    async def delivered(claimed: Claimed) -> Delivered:
        return Delivered("found")

    stage.sender.on_ask = delivered

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                return [Ask(row(1), 1.0)]
            case Asked():
                return [Send(row(1), 1.0)]
            case _:
                return [Finish()]

    machine = Script(answer)
    play(stage, machine)
    assert machine.events[1] == Asked(row(1).held, Delivered("found"))
    assert machine.replies[0].outcome == Delivered("reference-1")


def test_a_bug_of_the_machine_ends_the_run_loudly_and_leaves_nothing_behind() -> None:
    stage = Stage()
    stage.sender.on_send = forever

    def answer(event: Event) -> list[Command]:
        if isinstance(event, Started):
            return [Send(row(1), 10.0), Send(row(2), 10.0), Say(WORDS)]
        raise ZeroDivisionError

    async def whole() -> None:
        with pytest.raises(ZeroDivisionError):
            await stage.drive(Script(answer)).to_the_end(BEGIN)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


def test_a_bug_in_naming_the_next_instant_ends_the_run_loudly() -> None:
    class Lost(Script):
        def wake_at(self) -> float | None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play(Stage(), Lost(lambda event: []))


def test_what_no_guard_catches_ends_the_run_loudly() -> None:
    class Interrupted(BaseException):
        pass

    async def interrupted(claimed: Claimed) -> Reply:
        raise Interrupted

    stage = Stage()
    stage.sender.on_send = interrupted
    with pytest.raises(Interrupted):
        play(stage, Script(lambda event: [Send(row(1), 10.0)]))


def test_the_same_row_is_never_in_flight_twice() -> None:
    stage = Stage()
    stage.sender.on_send = forever
    machine = Script(lambda event: [Send(row(1), 10.0), Send(row(1), 10.0)])
    with pytest.raises(RuntimeError, match="in flight already"):
        play(stage, machine)


def test_a_send_that_will_not_stop_is_counted_and_not_waited_for() -> None:
    release = asyncio.Event()

    async def stubborn(claimed: Claimed) -> Reply:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ACCEPTED

    stage = Stage(sender=FakeSender(on_send=stubborn))

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                machine.wakes.append(stage.clock())
                return [Send(row(1), 10.0)]
            case _:
                return [Finish()] if stage.sender.begun else []

    machine = Script(answer)

    async def whole() -> int:
        drive = stage.drive(machine)
        try:
            async with asyncio.timeout(BOUND_SECONDS):
                await drive.to_the_end(BEGIN)
        finally:
            release.set()
        return drive.stragglers

    assert asyncio.run(whole()) == 1


def test_an_interrupt_stops_everything_that_flies() -> None:
    stage = Stage()
    begun = asyncio.Event()

    async def hang(claimed: Claimed) -> Reply:
        begun.set()
        await asyncio.Event().wait()
        return ACCEPTED

    stage.sender.on_send = hang
    machine = Script(lambda event: [Send(row(1), 10.0)])

    async def whole() -> None:
        running = asyncio.create_task(stage.drive(machine).to_the_end(BEGIN))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


def forever(_: object) -> Coroutine[Any, Any, Any]:
    return asyncio.Event().wait()


def test_uncertain_is_what_a_bare_stop_in_mid_send_comes_to() -> None:
    stage = Stage()
    stage.sender.on_send = forever
    claimed = row(1)

    def answer(event: Event) -> list[Command]:
        match event:
            case Started():
                machine.wakes.append(stage.clock())
                return [Send(claimed, 10.0)]
            case Tick():
                return [Cancel(claimed.held)] if stage.sender.begun else []
            case _:
                return [Finish()]

    machine = Script(answer)
    play(stage, machine)
    assert machine.replies[0].outcome == Uncertain("stopped while it was being sent")
