"""Around the run: what is said before the first claim, how it ends, and what an idle tick leaves alone."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from fencepost.core.budget import Budget, Timing
from fencepost.core.exchange import (
    Exchange,
    Exchanged,
    Facts,
    Failure,
    GateAnswer,
    RunStart,
    RunStarted,
    Verdict,
)
from fencepost.core.fact import ChannelSkipped, DatabaseRedialled, DatabaseUnsafe
from fencepost.core.notification import AttemptOutcome, ChannelId, Claimed, Held
from fencepost.core.step import Finish, Unsaid
from fencepost.core.tally import Ending
from fencepost.engine import Ended, ending, run_once
from fencepost.ports import Prepared, StoreFailed
from tests.engine.fakes import BOUND_SECONDS, CHANNEL, Stage, channel, row, start


def run(stage: Stage) -> Ended:
    async def whole() -> Ended:
        async with asyncio.timeout(BOUND_SECONDS):
            ended = await run_once(stage.around(), start=start(), budget=stage.budget())
        assert asyncio.all_tasks() == {asyncio.current_task()}, "something survived the run"
        return ended

    return asyncio.run(whole())


async def nothing() -> bool:
    return False


def serving(stage: Stage, rows: int = 1) -> Stage:
    """One channel with rows due; every word is applied."""
    stage.store.channels = (channel(),)
    stage.senders.known[CHANNEL] = stage.sender
    due = [row(number) for number in range(1, rows + 1)]

    async def exchange(words: Exchange) -> Exchanged:
        limit = sum(want.limit for want in words.claim)
        taken = tuple(due.pop(0) for _ in range(min(limit, len(due))))
        open_gate = GateAnswer(
            revision=1, paused_for_seconds=0.0, reason=None, token_in_seconds=0.0
        )
        return Exchanged(
            verdicts=tuple(Verdict.APPLIED for _ in words.settle),
            gates={want.channel: open_gate for want in words.claim},
            claimed=taken,
        )

    stage.store.on_exchange = exchange
    return stage


def test_an_idle_tick_asks_once_and_writes_nothing() -> None:
    stage = Stage()
    stage.store.on_has_work = nothing
    assert run(stage) == Ended(how=Ending.IDLE)
    assert stage.store.calls == ["wake", "has_work"]
    assert stage.senders.woken == 1


@pytest.mark.parametrize("left_seconds", [0.0, -5.0, 1.0, 12.0])
def test_without_time_for_one_send_nothing_is_asked_or_claimed(left_seconds: float) -> None:
    stage = Stage(left_seconds=left_seconds)
    assert run(stage) == Ended(how=Ending.NO_TIME)
    assert stage.store.calls == []


def test_what_is_due_is_delivered_and_the_run_says_it_left_nothing() -> None:
    stage = serving(Stage(), rows=25)
    assert run(stage) == Ended(how=Ending.DRAINED)
    assert sorted(stage.sender.begun) == list(range(1, 26))


@pytest.mark.parametrize("failure", [Failure.UNKNOWN, Failure.AWAY, Failure.RETRY])
def test_a_connection_that_died_in_a_freeze_costs_no_attempt(failure: Failure) -> None:
    stage = Stage()
    stage.store.on_has_work = failing_once(StoreFailed(failure, "broken"))
    stage.store.on_start = failing_start(StoreFailed(failure, "broken"))
    assert run(stage).how is Ending.DRAINED
    assert stage.store.calls[:5] == ["wake", "has_work", "wake", "has_work", "start_run"]


@pytest.mark.parametrize("failure", [Failure.REFUSED, Failure.DATA])
def test_a_refused_run_is_refused_at_once(failure: Failure) -> None:
    stage = Stage()

    async def refuse(start: RunStart) -> RunStarted:
        raise StoreFailed(failure, "this database belongs to production")

    stage.store.on_start = refuse
    with pytest.raises(StoreFailed, match="belongs to production"):
        run(stage)
    assert stage.store.calls.count("start_run") == 1


def test_a_database_that_stays_away_is_asked_three_times_and_then_reported() -> None:
    stage = Stage()

    async def away() -> bool:
        raise StoreFailed(Failure.AWAY, "no route")

    stage.store.on_has_work = away
    with pytest.raises(StoreFailed, match="no route"):
        run(stage)
    assert stage.store.calls.count("has_work") == 3


@pytest.mark.parametrize(("roll", "least"), [(0.0, [0.05, 0.1]), (1.0, [0.1, 0.2])])
def test_the_pauses_between_dials_grow_and_differ_by_chance(
    roll: float, least: list[float]
) -> None:
    """Many runs that found no free slot must not come back together."""
    stage = Stage()
    instants: list[float] = []

    async def away() -> bool:
        instants.append(asyncio.get_running_loop().time())
        raise StoreFailed(Failure.AWAY, "too many clients already")

    async def whole() -> None:
        around = replace(stage.around(), roll=lambda: roll)
        await run_once(around, start=start(), budget=stage.budget())

    stage.store.on_has_work = away
    with pytest.raises(StoreFailed, match="too many"):
        asyncio.run(whole())
    pauses = [later - earlier for earlier, later in pairwise(instants)]
    assert all(pause >= short for pause, short in zip(pauses, least, strict=True))


def test_what_was_odd_about_the_database_is_said_once() -> None:
    stage = serving(Stage())

    async def odd(start: RunStart) -> RunStarted:
        return RunStarted(channels=(channel(),), redialled="it slept", unsafe="it forgets")

    stage.store.on_start = odd
    run(stage)
    told = [fact for fact in stage.facts if isinstance(fact, DatabaseRedialled | DatabaseUnsafe)]
    assert told == [DatabaseRedialled(reason="it slept"), DatabaseUnsafe(reason="it forgets")]


def test_a_database_that_never_answers_is_given_up_in_time() -> None:
    stage = Stage(timing=Timing(exchange_timeout_seconds=0.02))

    async def hang() -> bool:
        return await asyncio.Event().wait()

    stage.store.on_has_work = hang
    with pytest.raises(StoreFailed, match="did not answer in time"):
        run(stage)


@pytest.mark.parametrize(
    ("error", "why"),
    [(None, "unknown sender kind 'fake'"), (KeyError("hunter2"), "KeyError at fakes.py:")],
    ids=["unknown kind", "bug"],
)
def test_a_channel_without_a_sender_is_reported_and_stops_no_other(
    error: Exception | None, why: str
) -> None:
    stage = serving(Stage(), rows=3)
    stage.store.channels = (channel(1), channel(2))
    if error is not None:
        stage.senders.broken[ChannelId(2)] = error
    assert run(stage).how is Ending.DRAINED
    skipped = [fact for fact in stage.facts if isinstance(fact, ChannelSkipped)]
    assert [fact.channel for fact in skipped] == [ChannelId(2)]
    assert skipped[0].reason.startswith(why)
    assert "hunter2" not in repr(skipped)
    assert len(stage.sender.begun) == 3


def test_one_bad_row_stops_none_of_its_batch() -> None:
    stage = serving(Stage(), rows=10)

    def prepare(claimed: Claimed) -> Prepared:
        if claimed.id == 4:
            raise ValueError("a bug")
        return Prepared(bytes(16), claimed.id)

    stage.sender.on_prepare = prepare
    run(stage)
    assert sorted(stage.sender.begun) == [1, 2, 3, 5, 6, 7, 8, 9, 10]


def test_how_a_run_ended_is_told_by_what_it_could_still_have_done() -> None:
    budget = Budget(timing=Timing(), hard_end=100.0)
    unsaid = Unsaid(Held(row().id, row().fence), AttemptOutcome.DELIVERED, Facts())
    assert ending(Finish(), budget, now=87.9) is Ending.DRAINED
    assert ending(Finish(), budget, now=88.0) is Ending.DEADLINE
    assert ending(Finish((unsaid,), refused=True), budget, now=10.0) is Ending.UNSAID
    assert ending(Finish(refused=True), budget, now=10.0) is Ending.REFUSED


def failing_once(error: StoreFailed) -> Callable[[], Awaitable[bool]]:
    errors = [error]

    async def answer() -> bool:
        if errors:
            raise errors.pop()
        return True

    return answer


def failing_start(error: StoreFailed) -> Callable[[RunStart], Awaitable[RunStarted]]:
    errors = [error]

    async def answer(start: RunStart) -> RunStarted:
        if errors:
            raise errors.pop()
        return RunStarted(channels=(replace(channel(), slots=1),))

    return answer
