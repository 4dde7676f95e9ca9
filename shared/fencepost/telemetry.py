"""Facts become log lines and numbers here, and nowhere else.

Lines go where the injected `Lines` sends them: Powertools' JSON in Lambda, plain text elsewhere. Numbers leave as the
run goes, so that a run that is killed has told all but its last second.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from fencepost.core.callback import Heard
from fencepost.core.channel import Channel
from fencepost.core.exchange import Failure
from fencepost.core.fact import ChannelSkipped, Fact, RowsClaimed, WordSettled
from fencepost.core.line import Level, Line, line_of
from fencepost.core.notification import ChannelId, RunId
from fencepost.core.tally import Count, Ending, Summary, Tally, counts_of
from fencepost.ports import Clock

NAMESPACE = "Fencepost"
SERVICE = "fencepost"
FLUSH_SECONDS = 1.0
VALUES_MAX = 99  # CloudWatch takes a hundred values of one metric in one record

Lines = Callable[[Line], None]


class Numbers(Struct):
    """What was counted and measured since the last flush."""

    counts: Counter[Count | Heard] = field(default_factory=Counter)
    oldest_due_seconds: float | None = None
    paused_channels: int | None = None
    send_milliseconds: list[int] = field(default_factory=list)

    def add(self, fact: Fact) -> None:
        for count, number in counts_of(fact):
            self.counts[count] += number
        if isinstance(fact, RowsClaimed):
            self.oldest_due_seconds = max(self.oldest_due_seconds or 0.0, fact.oldest_due_seconds)
        if isinstance(fact, WordSettled) and fact.took_ms is not None:
            self.send_milliseconds.append(fact.took_ms)

    def __bool__(self) -> bool:
        gauges = (self.oldest_due_seconds, self.paused_channels)
        return bool(self.counts or self.send_milliseconds or gauges != (None, None))


Metrics = Callable[[Numbers, str], None]  # where numbers go, and the run they belong to


class Telemetry:
    """The telemetry of one run. `tally` holds the whole run's counts."""

    def __init__(
        self, *, run: RunId, correlation: str, lines: Lines, metrics: Metrics, clock: Clock
    ) -> None:
        self._run = str(run)
        self._tied = {"run_id": self._run, "correlation_id": correlation}
        self._lines = lines
        self._metrics = metrics
        self._clock = clock
        self._flushed_at = clock()
        self._numbers = Numbers()
        self._names: dict[ChannelId, str] = {}
        self._skipped: list[str] = []
        self.tally = Tally()

    def know(self, channels: Sequence[Channel]) -> None:
        """The run's channels: from here on lines say their names."""
        self._names = {channel.id: channel.name for channel in channels}

    @property
    def skipped(self) -> tuple[str, ...]:
        """The names of the channels that this run could not send on."""
        return tuple(self._skipped)

    def report(self, fact: Fact) -> None:
        """Say it, count it, and let the numbers go once they are a second old."""
        self.say(line_of(fact, self._names))
        if isinstance(fact, ChannelSkipped):
            self._skipped.append(self._names.get(fact.channel, str(fact.channel)))
        self.tally.add(fact)
        self._numbers.add(fact)
        aged = self._clock() - self._flushed_at >= FLUSH_SECONDS
        if aged or len(self._numbers.send_milliseconds) >= VALUES_MAX:
            self.flush()

    def say(self, line: Line) -> None:
        self._lines(Line(line.level, line.action, {**line.particulars, **self._tied}))

    def ended(self, summary: Summary, *, paused_channels: int | None = None) -> None:
        """The last line and numbers. A run that found nothing due says so: the oldest is then 0 seconds old.

        `paused_channels` None: nobody knows."""
        level = Level.ERROR if summary.unsaid else Level.INFO
        self.say(Line(level, "run_ended", summary.as_json()))
        if summary.ended is Ending.IDLE:
            self._numbers.oldest_due_seconds = 0.0
        self._numbers.paused_channels = paused_channels
        self.flush()

    def refused(self, failure: Failure, detail: str) -> None:
        """The database let no run begin."""
        particulars = {"failure": failure.value, "detail": detail}
        self.say(Line(Level.ERROR, "run_not_started", particulars))

    def flush(self) -> None:
        if self._numbers:
            self._metrics(self._numbers, self._run)
        self._flushed_at = self._clock()
        self._numbers = Numbers()


def plain_lines(write: Callable[[str], object], least: Level = Level.INFO) -> Lines:
    """One readable text line each, for a terminal."""

    def say(line: Line) -> None:
        if list(Level).index(line.level) >= list(Level).index(least):
            particulars = " ".join(f"{name}={value}" for name, value in line.particulars.items())
            write(f"{line.level.upper():7} {line.action} {particulars}")

    return say


def no_metrics(numbers: Numbers, run: str) -> None:
    """Outside Lambda nobody collects them; the summary has the counts."""


def json_lines(service: str = SERVICE, **tied: str) -> Lines:
    """Powertools' structured lines on standard output, each with what is `tied` to it."""
    from aws_lambda_powertools import Logger

    logger = Logger(service=service, utc=True, location=None)  # it would always be this place

    def say(line: Line) -> None:
        level = getattr(logger, line.level.value)
        level(line.action, extra={"action": line.action, **tied, **line.particulars})

    return say


def embedded_metrics(write: Callable[[str], object], service: str = SERVICE) -> Metrics:
    """CloudWatch's embedded metric format: one record a flush, one namespace, one dimension.

    `service` is the installation in Lambda: two of them in one account are not one line of a graph."""
    from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
        AmazonCloudWatchEMFProvider,
    )

    def record(numbers: Numbers, run: str) -> None:
        provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service=service)
        for count, number in numbers.counts.items():
            provider.add_metric(metric_name(count), "Count", number)
        if numbers.oldest_due_seconds is not None:
            provider.add_metric("OldestDueAge", "Seconds", numbers.oldest_due_seconds)
        if numbers.paused_channels is not None:
            provider.add_metric("PausedChannels", "Count", numbers.paused_channels)
        for milliseconds in numbers.send_milliseconds:
            provider.add_metric("SendLatency", "Milliseconds", milliseconds)
        provider.add_metadata("run_id", run)
        write(json.dumps(provider.serialize_metric_set()))

    return record


def metric_name(count: Count | Heard) -> str:
    """`taken_over` → `TakenOver`."""
    return "".join(word.capitalize() for word in count.value.split("_"))
