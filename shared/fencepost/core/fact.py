"""What a run tells telemetry: facts with ids and counts, never a recipient or a payload (G10)."""

from msgspec import Struct

from fencepost.core.exchange import Failure, Verdict
from fencepost.core.notification import AttemptOutcome, ChannelId, Held, Kind


class RowsClaimed(Struct, frozen=True, kw_only=True):
    channel: ChannelId
    count: int
    taken_over: int  # rows whose earlier lease ran out
    in_doubt: int
    oldest_due_seconds: float


class WordSettled(Struct, frozen=True, kw_only=True):
    """One word and its verdict. No outcome and no kind: released."""

    channel: ChannelId
    held: Held
    outcome: AttemptOutcome | None
    kind: Kind | None
    verdict: Verdict
    reason: str | None
    took_ms: int | None


class LeasesRenewed(Struct, frozen=True, kw_only=True):
    count: int
    lost: int


class GatePaused(Struct, frozen=True, kw_only=True):
    channel: ChannelId
    seconds: float
    reason: str


class ExchangeTrouble(Struct, frozen=True, kw_only=True):
    """An exchange without an answer, and what the run does next."""

    failure: Failure
    detail: str
    consecutive: int


class BadRowParked(Struct, frozen=True, kw_only=True):
    """A row whose own words the database refuses was isolated (G9)."""

    held: Held
    detail: str


class ChannelSkipped(Struct, frozen=True, kw_only=True):
    """This run cannot send on the channel; its rows wait for one that can."""

    channel: ChannelId
    reason: str


class DatabaseRedialled(Struct, frozen=True, kw_only=True):
    """The connection of the run before was of no use any more. Nothing was lost by it."""

    reason: str


class DatabaseUnsafe(Struct, frozen=True, kw_only=True):
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
