"""All words between a run and the database: one call, one round trip, one transaction (DESIGN: the exchange)."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from fencepost.core.channel import Channel
from fencepost.core.notification import (
    AttemptOutcome,
    ChannelId,
    Claimed,
    Fence,
    Held,
    Kind,
    NotificationId,
    RunId,
)
from fencepost.core.reply import Phase


class Facts(Struct, frozen=True, kw_only=True):
    """What an attempt leaves in the ledger beside its outcome."""

    phase: Phase | None = None
    status: int | None = None
    reference: str | None = None  # the provider's
    digest: bytes | None = None  # of the bytes sent, 16 bytes
    took_ms: int | None = None
    detail: str | None = None  # cleaned and cut by the store


NO_FACTS = Facts()


class Word(Struct, frozen=True, kw_only=True):
    """A fenced settle word. `kind` closes; no kind: open again after the delay. No outcome: nothing was begun."""

    id: NotificationId
    fence: Fence
    outcome: AttemptOutcome | None = None
    kind: Kind | None = None
    delay_seconds: float = 0.0
    reason: str | None = None  # why it closed, or why it waits: a short code
    facts: Facts = NO_FACTS

    @property
    def held(self) -> Held:
        return Held(self.id, self.fence)


class GateWord(Struct, frozen=True, kw_only=True):
    """What the run learnt about a channel, under the revision it learnt it."""

    channel: ChannelId
    revision: int
    pause_seconds: float | None = None  # None: only ask
    reason: str | None = None


class Want(Struct, frozen=True, kw_only=True):
    """Ask for at most `limit` due rows of a channel."""

    channel: ChannelId
    limit: int
    hint: bool = (
        True  # start where this run's last claim ended; False: look from the start (expired leases)
    )


class Exchange(Struct, frozen=True, kw_only=True):
    """What a run says. The same `seq` again claims nothing new; a new one only after the last answer was read."""

    run: RunId
    seq: int
    lease_seconds: float
    settle: tuple[Word, ...] = ()
    renew: tuple[Held, ...] = ()
    gates: tuple[GateWord, ...] = ()
    claim: tuple[Want, ...] = ()
    last: bool = False


class Verdict(StrEnum):
    """The answer to one settle word."""

    APPLIED = "applied"
    REPEATED = "repeated"  # done before by this run at this fence, or a release with nothing to add
    LATE = "late"  # ownership lost; what it knew is evidence now
    CONFLICT = "conflict"  # a second delivered
    UNKNOWN = "unknown"  # no attempt of this run at this fence; evidence too


class GateAnswer(Struct, frozen=True, kw_only=True):
    """A channel's gate now. A channel missing in the answer was busy: ask again."""

    revision: int
    paused_for_seconds: float
    reason: str | None
    token_in_seconds: (
        float  # until the rate allows a next claim; 0 where it does now or there is no rate
    )


class Exchanged(Struct, frozen=True, kw_only=True):
    """The answer. `verdicts` in the order of `settle`; `lost` of `renew`; `gates` of `gates` and `claim`."""

    verdicts: tuple[Verdict, ...] = ()
    lost: tuple[Held, ...] = ()
    gates: Mapping[ChannelId, GateAnswer] = field(default_factory=dict)
    claimed: tuple[Claimed, ...] = ()


class Failure(StrEnum):
    """Why an exchange brought no answer, and what that says about its effect."""

    UNKNOWN = (
        "unknown"  # connection broken or FATAL: it may have been committed. Same words, same seq
    )
    RETRY = "retry"  # 40P01, 40001, busy: not committed. Same words, same seq
    DATA = "data"  # a data error: not committed. Fewer words, same seq
    REFUSED = "refused"  # not committed, and never will be: permission, missing function, run ended
    AWAY = "away"  # no connection to be had: nothing was said


class RunStart(Struct, frozen=True, kw_only=True):
    """What a run says of itself once. `installation` and `version` are checked before anything else."""

    run: RunId
    installation: str
    version: int  # of the code, against the database's minimum
    invocation: str  # the event's or invocation's id: correlation only
    deadline_in_seconds: float
    channels: tuple[str, ...] = ()  # names; empty: all


class RunStarted(Struct, frozen=True, kw_only=True):
    """The channels this run may serve, and what is odd about the database."""

    channels: tuple[Channel, ...]
    redialled: str | None = None  # why the connection had to be opened anew
    unsafe: str | None = None  # a setting under which what it confirmed may be lost
