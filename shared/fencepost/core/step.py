"""What goes in and out of the state machine of `core/run.py`: events in, commands out. No I/O on either side."""

from collections.abc import Mapping

from msgspec import Struct, field

from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import Exchange, Exchanged, Facts, Failure
from fencepost.core.fact import Fact
from fencepost.core.hosts import OriginOf
from fencepost.core.notification import ChannelId, Claimed, Held
from fencepost.core.outcome import Outcome

# --- events -----------------------------------------------------------------------------------------


class Started(Struct, frozen=True):
    """The run exists in the database; these are its channels, and what each sender offers.

    A channel named in `unavailable` (unknown sender kind, bad settings, missing credentials: why, one line) is
    skipped and reported, not paused: an older or a half-configured deployment must not stop the others.
    `origins`: whose recipients name hosts of their own, and which one each names. Pure.
    """

    channels: tuple[Channel, ...]
    facilities: Mapping[ChannelId, Facility]
    unavailable: Mapping[ChannelId, str] = field(default_factory=dict)
    origins: Mapping[ChannelId, OriginOf] = field(default_factory=dict)


class Answered(Struct, frozen=True):
    """The answer to the exchange under way."""

    answer: Exchanged


class Unanswered(Struct, frozen=True):
    """The exchange under way failed."""

    failure: Failure
    detail: str = ""


class Replied(Struct, frozen=True):
    """A send ended (also: was refused before it began, or was cancelled and reached some phase)."""

    held: Held
    outcome: Outcome
    facts: Facts


class Asked(Struct, frozen=True):
    """The provider was asked about a doubtful attempt; None: it could not say."""

    held: Held
    outcome: Outcome | None


class Tick(Struct, frozen=True):
    """Time passed; `Run.wake_at` named this instant."""


Event = Started | Answered | Unanswered | Replied | Asked | Tick

# --- commands ---------------------------------------------------------------------------------------


class Say(Struct, frozen=True):
    """Hold this exchange with the database. Never more than one at a time."""

    exchange: Exchange


class Send(Struct, frozen=True):
    """Send it now, within the timeout, and come back with `Replied` whatever happens."""

    claimed: Claimed
    timeout_seconds: float


class Ask(Struct, frozen=True):
    """Ask the provider what became of the earlier attempt; come back with `Asked`."""

    claimed: Claimed
    timeout_seconds: float


class Cancel(Struct, frozen=True):
    """Stop the work on this row: the lease was lost, or the time is up. `Replied` still follows."""

    held: Held


class Report(Struct, frozen=True):
    """A fact for telemetry."""

    fact: Fact


class Finish(Struct, frozen=True):
    """The run has ended; nothing is in flight. `unsaid` words could not be told to the database.

    `refused`: the database refused something for good, so more may be due than the run could see.
    """

    unsaid: tuple["Unsaid", ...] = ()
    refused: bool = False


class Unsaid(Struct, frozen=True):
    """Knowledge of a send that found no database: it leaves as an evidence message."""

    held: Held
    outcome: str  # an AttemptOutcome
    facts: Facts
    gone: bool = False  # the recipient is


Command = Say | Send | Ask | Cancel | Report | Finish
