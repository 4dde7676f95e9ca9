"""What a run tells telemetry: facts with ids and counts, never a recipient or a payload (G10)."""

from dataclasses import dataclass

from fencepost.core.exchange import Failure, Verdict
from fencepost.core.notification import AttemptOutcome, ChannelId, Held, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsClaimed:
    channel: ChannelId
    count: int
    taken_over: int  # rows whose earlier lease ran out
    in_doubt: int
    oldest_due_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSettled:
    """One word and its verdict. No outcome and no kind: released."""

    channel: ChannelId
    held: Held
    outcome: AttemptOutcome | None
    kind: Kind | None
    verdict: Verdict
    reason: str | None
    took_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesRenewed:
    count: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePaused:
    channel: ChannelId
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTrouble:
    """An exchange without an answer, and what the run does next."""

    failure: Failure
    detail: str
    consecutive: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRowParked:
    """A row whose own words the database refuses was isolated (G9)."""

    held: Held
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSkipped:
    """This run cannot send on the channel; its rows wait for one that can."""

    channel: ChannelId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRedialled:
    """The connection of the run before was of no use any more. Nothing was lost by it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUnsafe:
    """The database is set so that what it has confirmed may be lost."""

    reason: str


Fact = (
    ChannelSkipped
    | DatabaseRedialled
    | DatabaseUnsafe
    | RowsClaimed
    | WordSettled
    | LeasesRenewed
    | GatePaused
    | ExchangeTrouble
    | BadRowParked
)
