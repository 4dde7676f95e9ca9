"""How facts read in the log: ids and counts only, no recipient, payload or secret (G10)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, assert_never

from msgspec import Struct

from fencepost.core.exchange import Failure
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
from fencepost.core.notification import ChannelId
from fencepost.core.reason import NO_ANSWER
from fencepost.core.tally import Count, meaning


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Line(Struct, frozen=True):
    """One log line: what happened, as a word a machine can search for, and its particulars."""

    level: Level
    action: str
    particulars: Mapping[str, Any]


def line_of(fact: Fact, names: Mapping[ChannelId, str] = MappingProxyType({})) -> Line:
    """How a fact reads in the log. Channels have their names there; one whose name is not known, its number."""
    match fact:
        case RowsClaimed(channel=channel):
            return _claimed(fact, names.get(channel, channel))
        case WordSettled(channel=channel):
            return _settled(fact, names.get(channel, channel))
        case LeasesRenewed(count=count, lost=lost):
            level = Level.WARNING if lost else Level.DEBUG
            return Line(level, "leases_renewed", {"count": count, "lost": lost})
        case GatePaused(channel=channel, seconds=seconds, reason=reason):
            named = names.get(channel, channel)
            pause = {"channel": named, "seconds": seconds, "reason": reason}
            level = Level.ERROR if reason.startswith(MASS_REASON) else Level.WARNING
            return Line(level, "channel_paused", pause)
        case ExchangeTrouble():
            return _trouble(fact)
        case BadRowParked(held=held, detail=detail):
            row = {"notification": held.id, "fence": held.fence, "detail": detail}
            return Line(Level.ERROR, "bad_row_parked", row)
        case ChannelSkipped(channel=channel, reason=reason):
            skip = {"channel": names.get(channel, channel), "reason": reason}
            return Line(Level.ERROR, "channel_skipped", skip)
        case DatabaseRedialled(reason=reason):
            return Line(Level.INFO, "database_redialled", {"reason": reason})
        case DatabaseUnsafe(reason=reason):
            return Line(Level.WARNING, "database_unsafe", {"reason": reason})
        case _:
            assert_never(fact)


def _claimed(fact: RowsClaimed, channel: str | ChannelId) -> Line:
    level = Level.WARNING if fact.taken_over else Level.INFO
    particulars = {
        "channel": channel,
        "count": fact.count,
        "taken_over": fact.taken_over,
        "in_doubt": fact.in_doubt,
        "oldest_due_seconds": round(fact.oldest_due_seconds, 3),
    }
    return Line(level, "claimed", particulars)


SETTLED_LEVELS = {
    Count.DELIVERED: Level.DEBUG,
    Count.RELEASED: Level.DEBUG,
    Count.RETRIED: Level.INFO,
    Count.EXPIRED: Level.INFO,
    Count.PARKED: Level.WARNING,
    Count.LATE: Level.WARNING,
    Count.CONFLICTS: Level.ERROR,
}


def _settled(word: WordSettled, channel: str | ChannelId) -> Line:
    became = meaning(word)
    particulars = {
        "notification": word.held.id,
        "fence": word.held.fence,
        "channel": channel,
        "outcome": word.outcome,
        "kind": word.kind,
        "verdict": word.verdict,
        "reason": word.reason,
        "took_ms": word.took_ms,
    }
    known = {name: value for name, value in particulars.items() if value is not None}
    action = "conflict" if became is Count.CONFLICTS else became.value
    unanswered = became is Count.RETRIED and word.reason == NO_ANSWER
    level = Level.WARNING if unanswered else SETTLED_LEVELS[became]
    return Line(level, action, known)


def _trouble(fact: ExchangeTrouble) -> Line:
    again = fact.failure is Failure.RETRY
    particulars = {
        "failure": fact.failure.value,
        "detail": fact.detail,
        "consecutive": fact.consecutive,
    }
    return Line(Level.INFO if again else Level.WARNING, "exchange_trouble", particulars)
