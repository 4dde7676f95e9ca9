"""The end of a run that did not get through: in which order things are said, and what each failure leaves."""

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from fencepost.core.drain import Backlog, Reason
from fencepost.core.exchange import Failure
from fencepost.core.line import Level, Line
from fencepost.core.notification import RunId
from fencepost.core.tally import Count, Ending, Summary
from fencepost.ports import StoreFailed
from fencepost.scale_out import RunOver, ScaleOut

RUN = RunId(uuid.uuid4())


@dataclass
class Stage:
    """A store of waves and a queue, and what they were asked."""

    backlog_: Backlog = field(default_factory=lambda: Backlog(due=5000))
    free: bool = True
    taken: int | None = None  # by the queue; None: all
    silent: bool = False
    fails: bool = False
    said: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    part: UUID | None = None
    unsent: list[UUID] = field(default_factory=list)
    deaf: bool = False  # to what did not leave

    async def backlog(self, channels: tuple[str, ...], limit: int, seconds: float) -> Backlog:
        self.said.append("backlog")
        if self.fails:
            raise StoreFailed(Failure.UNKNOWN, "gone")
        if self.silent:
            await asyncio.Event().wait()
        return self.backlog_

    async def begin_wave(
        self, run: RunId, ids: Sequence[UUID], seconds: float, part: UUID | None
    ) -> bool:
        self.said.append("begin")
        self.part = part
        return self.free

    async def end_wave(self, run: RunId, unsent: Sequence[UUID]) -> bool:
        self.said.append("end")
        self.unsent = [*unsent]
        if self.deaf:
            raise StoreFailed(Failure.UNKNOWN, "gone")
        return True

    def send(self, bodies: Sequence[str], within_seconds: float) -> Sequence[str]:
        self.said.append("send")
        self.bodies += bodies
        return bodies[: self.taken]

    def after(
        self,
        *,
        ended: Ending = Ending.DEADLINE,
        delivered: int = 1000,
        messages_max: int = 10,
        left: float = 1.0,
        part: UUID | None = None,
    ) -> Line:
        counts = {count: delivered if count is Count.DELIVERED else 0 for count in Count}
        scale_out = ScaleOut(
            store=self, send=self.send, messages_max=messages_max, channels=(), clock=lambda: 100.0
        )
        over = RunOver(
            run=RUN,
            summary=Summary(run=str(RUN), ended=ended, counts=counts),
            seconds=60.0,
            claiming_seconds=48.0,
            finish_by=100.0 + left,
            part=part,
        )
        return asyncio.run(scale_out.after(over))


def told(line: Line) -> tuple[object, object]:
    return line.particulars["messages"], line.particulars["reason"]


def test_the_marker_is_set_before_a_message_leaves() -> None:
    stage = Stage()
    line = stage.after()
    assert stage.said == ["backlog", "begin", "send"]
    assert len(set(stage.bodies)) == 4
    assert line == Line(
        Level.INFO,
        "scale_out",
        {
            "messages": 4,
            "reason": Reason.BEHIND.value,
            "due": 5000,
            "more": False,
            "oldest_due_seconds": 0.0,
            "closed": 1000,
            "claiming_seconds": 48.0,
        },
    )


def test_while_a_wave_is_out_none_is_sent() -> None:
    stage = Stage(free=False)
    assert told(stage.after()) == (0, Reason.WAVE_OUT.value)
    assert stage.said == ["backlog", "begin"]


def test_a_drain_says_which_part_of_the_wave_it_is() -> None:
    stage, part = Stage(), uuid.uuid4()
    stage.after(part=part)
    assert stage.part == part


@pytest.mark.parametrize("ended", [Ending.IDLE, Ending.DRAINED, Ending.UNSAID, Ending.NO_TIME])
def test_a_run_that_has_no_use_for_others_asks_the_database_nothing(ended: Ending) -> None:
    stage = Stage()
    assert told(stage.after(ended=ended)) == (0, Reason.IN_TIME.value)
    assert told(stage.after(delivered=0)) == (0, Reason.NOTHING_CLOSED.value)
    assert told(stage.after(messages_max=0)) == (0, Reason.OFF.value)
    assert stage.said == []


def test_no_marker_is_set_where_nothing_is_to_be_sent() -> None:
    stage = Stage(Backlog(due=900))
    assert told(stage.after()) == (0, Reason.NEXT_TICK.value)
    assert stage.said == ["backlog"]


def test_a_queue_that_takes_nothing_leaves_no_wave_behind() -> None:
    stage = Stage(taken=0)
    line = stage.after()
    assert told(line) == (0, Reason.QUEUE_AWAY.value)
    assert line.level is Level.WARNING
    assert stage.said == ["backlog", "begin", "send", "end"]


def test_nobody_waits_for_what_the_queue_did_not_take() -> None:
    stage = Stage(taken=3)
    assert told(stage.after()) == (3, Reason.BEHIND.value)
    (refused,) = stage.bodies[3:]
    assert [str(id) for id in stage.unsent] == [json.loads(refused)["id"]]


def test_what_left_is_told_even_where_the_database_does_not_hear_of_the_rest() -> None:
    assert told(Stage(taken=3, deaf=True).after()) == (3, Reason.BEHIND.value)
    line = Stage(taken=0, deaf=True).after()
    assert told(line) == (0, Reason.QUEUE_AWAY.value)


@pytest.mark.parametrize("stage", [Stage(fails=True), Stage(silent=True)])
def test_a_database_that_does_not_answer_costs_no_more_than_the_time_there_is(stage: Stage) -> None:
    assert told(stage.after(left=0.01)) == (0, Reason.UNANSWERED.value)
    assert stage.said == ["backlog"]
