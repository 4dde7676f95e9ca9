"""What a run came to, counted from its facts: the summary of the function, and the numbers of telemetry."""

from collections.abc import Iterator
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from fencepost.core.exchange import Verdict
from fencepost.core.fact import (
    BadRowParked,
    ChannelSkipped,
    DatabaseRedialled,
    DatabaseUnsafe,
    ExchangeTrouble,
    Fact,
    GatePaused,
    LeasesRenewed,
    RowsClaimed,
    WordSettled,
)
from fencepost.core.gone import MASS_REASON
from fencepost.core.notification import AttemptOutcome, Kind


class Count(StrEnum):
    """What is counted. The value is the name in the summary."""

    CLAIMED = "claimed"
    TAKEN_OVER = "taken_over"
    CLAIMED_IN_DOUBT = "claimed_in_doubt"
    DELIVERED = "delivered"
    RETRIED = "retried"  # open again, to be tried later
    PARKED = "parked"  # closed as dead or uncertain: these two
    DEAD = "dead"
    UNCERTAIN = "uncertain"
    EXPIRED = "expired"  # closed as expired or cancelled: nothing was sent
    DOUBT = "doubt"  # attempts whose outcome is unknown, whatever became of the row
    RELEASED = "released"  # given back unsent
    LATE = "late"  # words of a holder that had lost its lease
    CONFLICTS = "conflicts"  # a second delivered
    RENEWALS = "renewals"
    LOST_LEASES = "lost_leases"
    PAUSES = "pauses"
    UNREGISTERED_MASSES = "unregistered_masses"  # of these: too many recipients said to be gone
    SKIPPED_CHANNELS = "skipped_channels"
    EXCHANGE_TROUBLES = "exchange_troubles"


class Ending(StrEnum):
    """How a run ended."""

    NO_TIME = "no_time"  # not enough time left to begin anything: nothing was asked or claimed
    IDLE = "idle"  # nothing was due: nothing was written
    DRAINED = "drained"  # it ended before its time was up: nothing more was due
    DEADLINE = "deadline"  # its time was up
    REFUSED = "refused"  # the database refused an exchange for good: more may be due
    UNSAID = "unsaid"  # the database stayed away: what it knew left as evidence messages


def counts_of(fact: Fact) -> Iterator[tuple[Count, int]]:
    """What one fact adds. A repeated word counts as applied: its first answer was lost, not counted."""
    match fact:
        case RowsClaimed():
            yield Count.CLAIMED, fact.count
            yield Count.TAKEN_OVER, fact.taken_over
            yield Count.CLAIMED_IN_DOUBT, fact.in_doubt
        case WordSettled():
            yield from _counts_of_word(fact)
        case LeasesRenewed():
            yield Count.RENEWALS, fact.count
            yield Count.LOST_LEASES, fact.lost
        case GatePaused(reason=why):
            yield Count.PAUSES, 1
            if why.startswith(MASS_REASON):
                yield Count.UNREGISTERED_MASSES, 1
        case ExchangeTrouble():
            yield Count.EXCHANGE_TROUBLES, 1
        case BadRowParked():
            yield Count.PARKED, 1
        case ChannelSkipped():
            yield Count.SKIPPED_CHANNELS, 1
        case DatabaseRedialled() | DatabaseUnsafe():
            return
        case _:
            assert_never(fact)


def _counts_of_word(word: WordSettled) -> Iterator[tuple[Count, int]]:
    became = meaning(word)
    yield became, 1
    if became is Count.PARKED:
        yield Count.DEAD if word.kind is Kind.DEAD else Count.UNCERTAIN, 1
    if word.outcome is AttemptOutcome.UNCERTAIN:
        yield Count.DOUBT, 1


def meaning(word: WordSettled) -> Count:
    """What became of the row by this word."""
    match word.verdict:
        case Verdict.LATE | Verdict.UNKNOWN:
            return Count.LATE
        case Verdict.CONFLICT:
            return Count.CONFLICTS
        case Verdict.APPLIED | Verdict.REPEATED:
            return _closed(word.kind) if word.kind else _open_again(word.outcome)
        case _:
            assert_never(word.verdict)


def _closed(kind: Kind) -> Count:
    match kind:
        case Kind.DELIVERED:
            return Count.DELIVERED
        case Kind.DEAD | Kind.UNCERTAIN:
            return Count.PARKED
        case Kind.EXPIRED | Kind.CANCELLED:
            return Count.EXPIRED
        case _:
            assert_never(kind)


def _open_again(outcome: AttemptOutcome | None) -> Count:
    return Count.RELEASED if outcome is None else Count.RETRIED


class Tally:
    """The running sum of one run's facts."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Count, 0)

    def add(self, fact: Fact) -> None:
        for count, number in counts_of(fact):
            self.counts[count] += number


class Summary(Struct, frozen=True, kw_only=True):
    """What the function answers: one run in numbers."""

    run: str
    ended: Ending
    counts: dict[Count, int]
    unsaid: int = 0
    skipped: tuple[str, ...] = ()  # names of the channels it could not send on

    @property
    def drained(self) -> bool:
        """Whether it left nothing that was due."""
        return self.ended in (Ending.IDLE, Ending.DRAINED)

    def as_json(self) -> dict[str, object]:
        """Plain JSON values."""
        numbers = {count.value: number for count, number in self.counts.items()}
        end = {"run": self.run, "ended": self.ended.value, "drained": self.drained}
        return {**end, **numbers, "skipped": list(self.skipped), "unsaid": self.unsaid}
