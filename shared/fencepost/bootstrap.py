"""The only composition root: settings, store, senders, telemetry and one event loop, made once a process.

Loop and connections outlive an invocation, so that a warm one dials nothing anew; what a freeze broke is found and
dropped at the start of each.
"""

import asyncio
import functools
import random
import time
import uuid
from types import TracebackType

from fencepost.core.budget import Budget
from fencepost.core.exchange import RunStart
from fencepost.core.line import Level, Line
from fencepost.core.message import evidence_messages
from fencepost.core.notification import RunId
from fencepost.core.step import Unsaid
from fencepost.core.tally import Summary
from fencepost.core.version import CODE_VERSION
from fencepost.drive import Surroundings
from fencepost.engine import Ended, run_once
from fencepost.ports import Store, StoreFailed
from fencepost.senders.evidence_queue import EvidenceQueue
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import Settings, SettingsError, read_secret, read_settings
from fencepost.store.postgres import PostgresStore
from fencepost.telemetry import Lines, Metrics, Telemetry, embedded_metrics, json_lines, no_metrics

CONNECT_TIMEOUT_SECONDS = 5.0


class Worker:
    """Delivers what is due, one run at a time. Not for use inside another event loop."""

    def __init__(self, settings: Settings, *, lines: Lines, metrics: Metrics = no_metrics) -> None:
        self._settings = settings
        self._lines = lines
        self._metrics = metrics
        self._clock = time.monotonic
        self._runner = asyncio.Runner()
        self._store: Store = PostgresStore(
            settings.database_url,
            connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
            exchange_timeout_seconds=settings.timing.exchange_timeout_seconds,
        )
        self._senders = SenderRegistry(read_secret, Transport())
        self.spoilt = False  # a send would not stop: this worker's loop must not run again

    def deliver(self, *, remaining_seconds: float | None, correlation: str) -> Summary:
        """One run within the time that is left. Raises `StoreFailed` if none could begin.

        Zero and less are real values and claim nothing; None means nobody knows, and is refused.
        """
        if remaining_seconds is None:
            raise SettingsError(
                "The remaining time of this invocation is unknown: nothing may be begun."
            )
        budget = Budget(timing=self._settings.timing, hard_end=self._clock() + remaining_seconds)
        start = self._start(remaining_seconds, correlation)
        telemetry = self._telemetry(start.run, correlation)
        try:
            ended = self._runner.run(run_once(self._around(telemetry), start=start, budget=budget))
        except StoreFailed as failed:
            telemetry.refused(failed.failure, failed.detail)
            raise
        self.spoilt = bool(ended.stragglers)
        self._say_elsewhere(start.run, ended.unsaid, budget, telemetry)
        return self._told(start.run, ended, telemetry)

    def close(self) -> None:
        """Drop every connection and the loop."""
        if not self.spoilt:
            self._runner.run(self._close())
            self._runner.close()

    async def _close(self) -> None:
        await self._senders.close()
        await self._store.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

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
            lines=self._lines,
            metrics=self._metrics,
            clock=self._clock,
        )

    def _around(self, telemetry: Telemetry) -> Surroundings:
        return Surroundings(
            store=self._store,
            senders=self._senders,
            clock=self._clock,
            roll=random.random,
            report=telemetry.report,
        )

    def _say_elsewhere(
        self, run: RunId, unsaid: tuple[Unsaid, ...], budget: Budget, telemetry: Telemetry
    ) -> None:
        """What found no database goes to the log, and to the queue where there is one."""
        bodies = evidence_messages(self._settings.installation, run, unsaid)
        for body in bodies:
            telemetry.say(Line(Level.ERROR, "evidence_unsaid", {"message": body}))
        if bodies and self._settings.evidence_queue_url:
            left = budget.hard_end - self._clock()
            taken = EvidenceQueue(self._settings.evidence_queue_url).send(
                bodies, within_seconds=left
            )
            level = Level.INFO if taken == len(bodies) else Level.ERROR
            telemetry.say(Line(level, "evidence_queued", {"messages": len(bodies), "taken": taken}))

    def _told(self, run: RunId, ended: Ended, telemetry: Telemetry) -> Summary:
        counts = telemetry.tally.counts
        summary = Summary(run=str(run), ended=ended.how, counts=counts, unsaid=len(ended.unsaid))
        telemetry.ended(summary)
        return summary


@functools.cache
def lambda_worker() -> Worker:
    """The worker of this sandbox: settings are read, and a bad one refused, at the first invocation."""
    return Worker(read_settings(), lines=json_lines(), metrics=embedded_metrics(print))


def deliver(*, remaining_seconds: float | None, correlation: str) -> dict[str, object]:
    """One run of this sandbox's worker, summed up in plain JSON values."""
    worker = lambda_worker()
    try:
        return worker.deliver(
            remaining_seconds=remaining_seconds, correlation=correlation
        ).as_json()
    finally:
        if worker.spoilt:
            lambda_worker.cache_clear()
