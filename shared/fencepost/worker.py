"""The worker of one process: a loop and connections that outlive a run, and one run after the other."""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from fencepost.core.budget import Budget
from fencepost.core.exchange import RunStart
from fencepost.core.line import Level, Line
from fencepost.core.message import evidence_messages
from fencepost.core.notification import RunId
from fencepost.core.retention import Pruned
from fencepost.core.step import Unsaid
from fencepost.core.tally import Ending, Summary
from fencepost.core.version import CODE_VERSION
from fencepost.drive import NoteSkips, Surroundings
from fencepost.engine import Ended, run_once
from fencepost.ports import Senders, Store, StoreFailed
from fencepost.receipts import AskForReceipts
from fencepost.scale_out import RunOver, ScaleOut
from fencepost.settings import Settings, SettingsError
from fencepost.telemetry import Lines, Metrics, Telemetry, no_metrics

Answer = TypeVar("Answer")
# Takes message bodies and the seconds left; answers those that were taken.
SayElsewhere = Callable[[Sequence[str], float], Sequence[str]]
# Takes names of channels (none: all); answers how many are paused while something due waits in them.
CountPaused = Callable[[tuple[str, ...]], Awaitable[int]]
Prune = Callable[[int], Awaitable[Pruned]]  # one step: so many rows at most. Raises `StoreFailed`
COUNT_SECONDS_MAX = 1.0
PRUNE_ROWS = 1000  # a step: some milliseconds
PRUNE_SECONDS_MAX = 0.5  # of a run that leaves old rows behind; the next run goes on


class Parts(Struct, frozen=True, kw_only=True):
    """What a worker is made of. `say_elsewhere` None: what finds no database goes to the log only.
    `count_paused` None: nobody watches. `prune` None: what is old stays. `scale_out` None: a run asks for no
    others. `receipts` None: nobody asks what became of what was accepted."""

    store: Store
    senders: Senders
    lines: Lines
    metrics: Metrics = no_metrics
    say_elsewhere: SayElsewhere | None = None
    count_paused: CountPaused | None = None
    note_skips: NoteSkips | None = None
    prune: Prune | None = None
    scale_out: ScaleOut | None = None
    receipts: AskForReceipts | None = None


class Worker:
    """Delivers what is due, one run at a time. Not for use inside another event loop."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._clock = time.monotonic
        self._runner = asyncio.Runner()
        self.spoilt = False  # something of a run may live on: this worker's loop must not run again

    def deliver(
        self, *, remaining_seconds: float | None, correlation: str, part: UUID | None = None
    ) -> Summary:
        """One run within the time that is left. Raises `StoreFailed` if none could begin. `part`: the drain command
        it is, if it is one.

        Zero and less are real values and claim nothing; None means nobody knows, and is refused.
        """
        if remaining_seconds is None:
            raise SettingsError("The time this invocation has left is unknown: nothing may begin.")
        began = self._clock()
        hard_end = began + remaining_seconds
        budget = Budget(timing=self._settings.timing, hard_end=hard_end)
        start = self._start(remaining_seconds, correlation)
        telemetry = self._telemetry(start.run, correlation)
        ended = self._run(start, budget, telemetry)
        self._tell_elsewhere(start.run, ended.unsaid, hard_end, telemetry)
        summary = Summary(
            run=str(start.run),
            ended=ended.how,
            counts=telemetry.tally.counts,
            unsaid=len(ended.unsaid),
            skipped=telemetry.skipped,
        )
        telemetry.ended(summary, paused_channels=self._count_paused(budget))
        over = RunOver(
            run=start.run,
            summary=summary,
            seconds=remaining_seconds,
            claiming_seconds=max(0.0, budget.stop_claiming - began),
            finish_by=budget.finish_by,
            part=part,
        )
        self._ask_for_others(over, telemetry)
        if ended.how in (Ending.IDLE, Ending.DRAINED, Ending.DEADLINE):  # the database answers
            self._ask_for_receipts(budget, telemetry)
        if ended.how in (Ending.DRAINED, Ending.DEADLINE):  # an idle tick writes nothing
            self._prune(budget, telemetry)
        return summary

    def close(self) -> None:
        """Drop every connection and the loop."""
        if not self.spoilt:
            self._runner.run(self._close())
            self._runner.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def _close(self) -> None:
        await self._parts.senders.close()
        await self._parts.store.close()

    def _run(self, start: RunStart, budget: Budget, telemetry: Telemetry) -> Ended:
        around = Surroundings(
            store=self._parts.store,
            senders=self._parts.senders,
            clock=self._clock,
            roll=random.random,
            report=telemetry.report,
            know=telemetry.know,
            note_skips=self._parts.note_skips,
        )
        self.spoilt = (
            True  # until it has come back: whoever is thrown out of a run leaves things behind
        )
        try:
            ended = self._runner.run(run_once(around, start=start, budget=budget))
        except StoreFailed as failed:
            self.spoilt = False  # nothing had begun
            telemetry.refused(failed.failure, failed.detail)
            raise
        self.spoilt = bool(ended.stragglers)
        return ended

    def _count_paused(self, budget: Budget) -> int | None:
        """The last question of a run, in what is left of its time. None: not asked, or not answered."""
        left = min(COUNT_SECONDS_MAX, budget.finish_by - self._clock())
        if self._parts.count_paused is None or self.spoilt or left <= 0.0:
            return None
        try:
            question = self._parts.count_paused(self._settings.channels)
            return self._runner.run(_within(left, question))
        except (StoreFailed, TimeoutError):
            return None

    def _ask_for_others(self, over: RunOver, telemetry: Telemetry) -> None:
        """After the last word of a run that did not get through: more runs may be asked for."""
        if self._parts.scale_out is not None and not self.spoilt:
            telemetry.say(self._runner.run(self._parts.scale_out.after(over)))

    def _ask_for_receipts(self, budget: Budget, telemetry: Telemetry) -> None:
        """After the last word, in what is left of the time, on an idle tick too."""
        if self._parts.receipts is not None and not self.spoilt:
            line = self._runner.run(self._parts.receipts.until(budget.finish_by))
            if line is not None:
                telemetry.say(line)

    def _prune(self, budget: Budget, telemetry: Telemetry) -> None:
        """After the last word, in what is left of the time: small steps. Whatever fails, nothing is lost by it."""
        until = min(budget.finish_by, self._clock() + PRUNE_SECONDS_MAX)
        if self._parts.prune is None or self.spoilt or self._clock() >= until:
            return
        try:
            journal, runs = self._runner.run(self._prune_until(until, self._parts.prune))
        except (StoreFailed, TimeoutError) as failed:
            telemetry.say(Line(Level.WARNING, "not_pruned", {"detail": str(failed) or "no answer"}))
            return
        if journal + runs:
            telemetry.say(Line(Level.INFO, "pruned", {"journal": journal, "runs": runs}))

    async def _prune_until(self, until: float, prune: Prune) -> tuple[int, int]:
        journal, runs, more = 0, 0, True
        while more and (left := until - self._clock()) > 0.0:
            step = await _within(left, prune(PRUNE_ROWS))
            journal, runs, more = journal + step.journal, runs + step.runs, step.more
        return journal, runs

    def _start(self, remaining_seconds: float, correlation: str) -> RunStart:
        return RunStart(
            run=RunId(uuid.uuid4()),
            installation=self._settings.installation,
            version=CODE_VERSION,
            invocation=correlation,
            deadline_in_seconds=remaining_seconds,
            channels=self._settings.channels,
        )

    def _telemetry(self, run: RunId, correlation: str) -> Telemetry:
        return Telemetry(
            run=run,
            correlation=correlation,
            lines=self._parts.lines,
            metrics=self._parts.metrics,
            clock=self._clock,
        )

    def _tell_elsewhere(
        self, run: RunId, unsaid: tuple[Unsaid, ...], hard_end: float, telemetry: Telemetry
    ) -> None:
        """What found no database goes to the log, and to the queue where there is one."""
        bodies = evidence_messages(self._settings.installation, run, unsaid)
        for body in bodies:
            telemetry.say(Line(Level.ERROR, "evidence_unsaid", {"evidence": body}))
        if bodies and self._parts.say_elsewhere is not None:
            taken = len(self._parts.say_elsewhere(bodies, hard_end - self._clock()))
            level = Level.INFO if taken == len(bodies) else Level.ERROR
            told = {"messages": len(bodies), "taken": taken}
            telemetry.say(Line(level, "evidence_queued", told))


async def _within(seconds: float, question: Awaitable[Answer]) -> Answer:
    async with asyncio.timeout(seconds):
        return await question
