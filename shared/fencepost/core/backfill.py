"""Decisions of a backfill: how much of an invocation one message may have, and when a command goes on elsewhere."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from fencepost.core.command import CommandId, CommandRefused

RETURN_SECONDS = (
    2.0  # kept of an invocation for what follows the work: continuation, log, the answer to Lambda
)
RUN_SHARE = 0.5  # of a batch with a drain in it
PAGE_SECONDS = 1.0  # what a page is expected to take before any was seen
MARGIN = 2.0  # the next page may take so many times the longest one of late
FORGETTING = 0.7  # a page long ago says less: the first one opened connections


class Ending(StrEnum):
    """How a message ended. The first four are acknowledged."""

    DONE = "done"  # the command has ended, now or by an earlier delivery
    CONTINUED = "continued"  # another message carries it on
    SUPERSEDED = "superseded"  # a newer message carries it on already
    KNOWN = "known"  # it had ended before
    REFUSED = "refused"  # it will never be done: it fails until it reaches the DLQ
    STALE = "stale"  # another delivery of it is at work: this one comes back later
    PUT_BACK = "put_back"  # no time: it comes back on purpose
    AWAY = "away"  # the database or the queue is away: it comes back


ACKNOWLEDGED = frozenset({Ending.DONE, Ending.CONTINUED, Ending.SUPERSEDED, Ending.KNOWN})


class Ended(Struct, frozen=True, kw_only=True):
    """What one message came to: how it ended, why, and what was done for the command so far."""

    ending: Ending
    reason: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)  # the command, where it could be read

    @property
    def acknowledged(self) -> bool:
        return self.ending in ACKNOWLEDGED


class Verdict(StrEnum):
    """What the database says to who begins a command or a page of it."""

    BEGUN = "begun"
    RESUMED = "resumed"  # an earlier delivery had begun it
    GOING = "going"  # the page is done, and there is more
    DONE = "done"
    REFUSED = "refused"
    SUPERSEDED = "superseded"  # a newer message carries it on
    STALE = "stale"  # another delivery has taken it up since
    DIFFERS = "differs"  # the id belongs to a command with other words


class Turn(Struct, frozen=True, kw_only=True):
    """A delivery's hold on a command: its fence, and how far the command got."""

    id: CommandId
    fence: int
    place: Mapping[str, Any]


class Begun(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    turn: Turn
    counts: Mapping[str, int]
    reason: str | None = None


class Paged(Struct, frozen=True, kw_only=True):
    """What became of one page, and where the next begins. `faults`: number and reason of every bad row in it."""

    verdict: Verdict
    counts: Mapping[str, int]
    place: Mapping[str, Any]
    faults: tuple[tuple[int, str], ...] = ()
    size: int = 0  # bytes of a file that were read for it


ENDINGS = {
    Verdict.DONE: Ending.DONE,
    Verdict.REFUSED: Ending.REFUSED,
    Verdict.STALE: Ending.STALE,
}


def over(begun: Begun) -> Ended | None:
    """Where there is nothing left to do for this message; None: it goes on."""
    match begun.verdict:
        case Verdict.BEGUN | Verdict.RESUMED:
            return None
        case Verdict.DONE:
            return Ended(ending=Ending.KNOWN, counts=begun.counts)
        case Verdict.SUPERSEDED:
            return Ended(ending=Ending.SUPERSEDED, counts=begun.counts)
        case Verdict.REFUSED:
            return Ended(ending=Ending.REFUSED, reason=begun.reason, counts=begun.counts)
        case _:
            raise CommandRefused(f"its id {begun.turn.id} belongs to a command with other words")


def why(page: Paged) -> str | None:
    """Why a page was the last, where that was not its plan."""
    match page.verdict:
        case Verdict.STALE:
            return "another delivery of this command is at work"
        case Verdict.REFUSED:
            return "atomic, and some rows are bad: nothing was enqueued"
        case _:
            return None


def kept_for_run(now: float, hard_end: float) -> float:
    """What other records of a batch leave to a run that comes after them: with less than a run needs it would come
    back, and after five times in such company it would be in the DLQ."""
    return RUN_SHARE * max(0.0, hard_end - RETURN_SECONDS - now)


def share(now: float, hard_end: float, records: int, *, kept: float = 0.0) -> tuple[float, float]:
    """Limit and end of the share of one of the records that are left: what one does not use is the others'."""
    limit = hard_end - RETURN_SECONDS
    return limit, now + max(0.0, limit - kept - now) / max(records, 1)


class Pace(Struct):
    """Pages of one message, on the caller's clock. The first may use whatever the invocation has left; those after it
    only what is left of the message's share (`until`), and only if they will surely end in it."""

    limit: float  # nothing may begin that would not have ended by then
    until: float
    pages: int = 0
    longest: float = 0.0

    def fits(self, now: float) -> bool:
        """Whether another page may begin."""
        if not self.pages:
            return now + PAGE_SECONDS <= self.limit
        return now + self.longest * MARGIN <= min(self.until, self.limit)

    def took(self, seconds: float) -> None:
        self.pages += 1
        self.longest = max(self.longest * FORGETTING, seconds)
