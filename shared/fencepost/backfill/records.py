"""The records of one invocation: each gets its share of the time, is told in one line, and fails alone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Timer
from types import TracebackType
from typing import Any, Protocol, Self

from fencepost.attempt import place_of
from fencepost.backfill.work import Backfill
from fencepost.core.backfill import RETURN_SECONDS, Ended, Ending, Pace, kept_for_run, share
from fencepost.core.line import Level, Line
from fencepost.core.tally import Count
from fencepost.ports import Clock
from fencepost.telemetry import Lines, Metrics, Numbers

LEVELS = {
    Ending.DONE: Level.INFO,
    Ending.CONTINUED: Level.INFO,
    Ending.SUPERSEDED: Level.INFO,
    Ending.KNOWN: Level.INFO,
    Ending.STALE: Level.INFO,
    Ending.PUT_BACK: Level.WARNING,
    Ending.AWAY: Level.WARNING,
    Ending.REFUSED: Level.ERROR,
}


LAST_SECONDS = RETURN_SECONDS / 2  # nothing is waited for after that


class RecordFailed(Exception):
    """This record comes back; why is in the log already."""


class Record(Protocol):
    """What is asked of an SQS record."""

    @property
    def message_id(self) -> str: ...

    @property
    def body(self) -> str: ...


class Records:
    """One batch. `hard_end`: when the invocation dies, on the clock's terms. `hang_up`: ends the wait for an answer."""

    def __init__(
        self,
        backfill: Backfill,
        *,
        count: int,
        hard_end: float,
        clock: Clock,
        lines: Lines,
        metrics: Metrics,
        hang_up: Callable[[], None],
    ) -> None:
        self._backfill = backfill
        self._left, self._runs, self._kept = count, 0, 0.0
        self._hard_end = hard_end
        self._clock = clock
        self._lines = lines
        self._metrics = metrics
        self._over = Timer(hard_end - LAST_SECONDS - clock(), hang_up)

    def __enter__(self) -> Self:
        """Whoever still waits for the database when the time is up waits no more, and the batch is answered."""
        self._over.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.cancel()
        self._over.join()

    def in_order(self, records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """What asks for a whole run comes last: it takes all the time there is, and the others leave it some."""
        self._runs = sum(map(_asks_for_run, records))
        self._kept = kept_for_run(self._clock(), self._hard_end) if self._runs else 0.0
        return sorted(records, key=_asks_for_run)

    def take(self, record: Record) -> None:
        """Do what it says. Raises `RecordFailed` where it must come back."""
        before_runs = max(0, self._left - self._runs)
        kept = self._kept if before_runs else 0.0
        limit, until = share(self._clock(), self._hard_end, before_runs or self._left, kept=kept)
        self._left -= 1
        ended = self._backfill.take(record.body, Pace(limit=limit, until=until))
        self._lines(line_of(ended, record.message_id))
        conflicts = ended.counts.get("conflicts")
        if conflicts:  # a second delivered alarms, however late it is heard of
            numbers = Numbers(counts=Counter({Count.CONFLICTS: conflicts}))
            self._metrics(numbers, ended.named.get("run", ""))
        if not ended.acknowledged:
            raise RecordFailed(ended.ending.value)

    def tell(self, failures: Sequence[tuple[Any, BaseException | None, Any]]) -> None:
        """What else went wrong around a record: a bug of ours, without its text, which may quote a payload (G10)."""
        for _, failure, _ in failures:
            if failure is not None and not isinstance(failure, RecordFailed):
                self._lines(Line(Level.ERROR, "command_broken", {"bug": place_of(failure)}))


def _asks_for_run(record: Mapping[str, Any]) -> bool:
    return '"drain"' in str(record.get("body", ""))[:300]


def line_of(ended: Ended, message_id: str) -> Line:
    """How a message's end reads in the log: ids, counts and a reason, and nothing of what it said."""
    particulars: dict[str, Any] = {"message_id": message_id, **ended.named, **ended.counts}
    if ended.reason is not None:
        particulars["reason"] = ended.reason
    level = LEVELS[ended.ending]
    if level is Level.INFO and ended.counts.get("refused"):
        level = Level.WARNING  # done, with bad rows left out
    if ended.counts.get("conflicts"):
        level = Level.ERROR
    return Line(level, f"command_{ended.ending.value}", particulars)
