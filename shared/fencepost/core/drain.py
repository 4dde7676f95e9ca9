"""Scale-out: how many more runs a run asks for when it leaves more than the next tick will get through.

One wave of drain messages is out at a time. It is as large as what is due asks for, measured by what this run closed
in its time, and never larger than the setting. Runs that help nobody are not asked for: where nothing came to an end,
or where whatever is due waits for a gate, more runs would only wait too.
"""

from enum import StrEnum

from msgspec import Struct

from fencepost.core.tally import Count, Ending, Summary

MESSAGES_DEFAULT, MESSAGES_MAX = 10, 100  # of one wave; it is sent in the last second of a run
COUNT_MAX = 50_000  # rows counted at most: some ten milliseconds
SLACK = 0.25  # of what one run closed: so little more is no reason for another run
OLD_RUNS = (
    2.0  # due for longer than so many runs take: whatever the count says, the ticks do not reach it
)
WAVE_SECONDS_MAX = 900.0  # a wave whose messages were lost is in the way for so long at most
WAVE_MARGIN_SECONDS = 30.0  # on top of its runs one after the other: the way through the queue
CLOSED = (Count.DELIVERED, Count.PARKED, Count.EXPIRED)


class Reason(StrEnum):
    """Why a wave is as large as it is."""

    OFF = "off: no queue, or no messages allowed"
    IN_TIME = "the run was done before its time was up"
    NOTHING_CLOSED = "the run closed nothing: more of them would not help"
    NOTHING_DUE = "nothing is due that a run could send now"
    NEXT_TICK = "the next tick gets through what is due"
    BEHIND = "more is due than the next tick gets through"
    BOUNDED = "more is due than the largest wave gets through"
    OLD = "little is due, and the ticks do not reach it"
    WAVE_OUT = "a wave is out already"
    QUEUE_AWAY = "the queue took no message"
    UNANSWERED = "the database did not answer"


class Backlog(Struct, frozen=True, kw_only=True):
    """What a run could claim now: counted up to a limit (`more`: there are more), and how long the oldest is due."""

    due: int
    more: bool = False
    oldest_due_seconds: float = 0.0


class Pulled(Struct, frozen=True, kw_only=True):
    """What one run got through in the time in which it could claim."""

    closed: int
    seconds: float


class Wave(Struct, frozen=True):
    """So many messages, and why."""

    messages: int
    reason: Reason


def idle_reason(summary: Summary, messages_max: int) -> Reason | None:
    """Why nobody need count what is due; None: it is to be counted."""
    if messages_max <= 0:
        return Reason.OFF
    if summary.ended is not Ending.DEADLINE:
        return Reason.IN_TIME
    return None if closed(summary) else Reason.NOTHING_CLOSED


def closed(summary: Summary) -> int:
    """How many notifications this run brought to an end."""
    return sum(summary.counts[count] for count in CLOSED)


def count_limit(pulled: Pulled, messages_max: int) -> int:
    """How far to count: more than this changes nothing."""
    return min(COUNT_MAX, (messages_max + 2) * pulled.closed)


def wave(backlog: Backlog, pulled: Pulled, messages_max: int) -> Wave:
    """As many messages as there are runs needed beside the next tick's. `pulled.closed` is above 0."""
    if backlog.due <= 0:
        return Wave(0, Reason.NOTHING_DUE)
    if backlog.more:
        return Wave(messages_max, Reason.BOUNDED)
    beside = _runs(backlog.due, pulled.closed) - 1
    if beside > messages_max:
        return Wave(messages_max, Reason.BOUNDED)
    if beside > 0:
        return Wave(beside, Reason.BEHIND)
    if backlog.oldest_due_seconds > OLD_RUNS * pulled.seconds:
        return Wave(1, Reason.OLD)
    return Wave(0, Reason.NEXT_TICK)


def _runs(due: int, closed_by_one: int) -> int:
    whole, rest = divmod(due, closed_by_one)
    return whole + (rest > SLACK * closed_by_one)


def wave_seconds(messages: int, run_seconds: float) -> float:
    """How long a wave may be out: its runs one after the other. Then another may go, whatever became of it."""
    return min(WAVE_SECONDS_MAX, messages * max(run_seconds, 0.0) + WAVE_MARGIN_SECONDS)
