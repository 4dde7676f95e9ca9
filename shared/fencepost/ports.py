"""The seams of the worker: where words go and how one gets there, where messages go, and what time it is."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import Exchange, Exchanged, Failure, RunStart, RunStarted
from fencepost.core.notification import ChannelId, Claimed
from fencepost.core.outcome import Outcome
from fencepost.core.reply import Reply


class StoreFailed(Exception):
    """The store gave no answer; `failure` says what that means for what was said."""

    def __init__(self, failure: Failure, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail


class NotMigrated(StoreFailed):
    """The functions that this code calls are not there: refused, and a migration puts it right."""


class Store(Protocol):
    """The database as a run knows it. Every method raises `StoreFailed` and nothing else.

    One caller at a time. A method that is cancelled leaves the connection unusable and the next one dials anew.
    """

    async def has_work(self, channels: tuple[str, ...] = ()) -> bool:
        """Whether a claim would find something now (gates included). Reads only. No names: all channels."""
        ...

    async def start_run(self, start: RunStart) -> RunStarted:
        """Create the run (saying it again is harmless) after checking installation and version."""
        ...

    async def exchange(self, exchange: Exchange) -> Exchanged:
        """Say all of it in one transaction. See core/exchange.py for what each part promises."""
        ...

    async def wake(self) -> None:
        """Start of an invocation: drop a connection that did not survive the freeze."""
        ...

    async def close(self) -> None: ...


class Access(Protocol):
    """The way to the database, and who we are there."""

    def conninfo(self, *, anew: bool = False) -> str:
        """What to dial with now. May take a few seconds. `anew`: what it gave before was refused.
        Raises `AccessUnavailable`."""
        ...


class AccessUnavailable(Exception):
    """Nothing to dial with: one line why, without secrets."""


class Prepared(Struct, frozen=True):
    """A message ready to leave. `digest`: 16 bytes over what the recipient would receive (not over
    what changes each attempt: timestamps, signatures)."""

    digest: bytes
    request: object


class Sender(Protocol):
    """One channel's way out. Built once a process per channel revision; shared by warm invocations."""

    facility: Facility

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        """The message, or why there can be none (`Rejected`, `CredentialFailure`). Pure."""
        ...

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        """Send once. Never raises for the network: the reply's phase tells. When it is cancelled it raises
        `SendCancelled`, whose reply tells how far it got; a bare `CancelledError` means it never began."""
        ...

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        """What the reply to this row's message means. Pure: the provider's table."""
        ...

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        """What became of an earlier attempt, where the provider can tell. `Uncertain`: it could not say, and why, for
        `explain`; None: the same, without a reason. Only `NotSent` and `Failed` let it be sent again."""
        ...


@runtime_checkable
class Receipts(Protocol):
    """A sender whose provider tells later what became of what it accepted (`Delivered(receipt_due=True)`).

    What it tells becomes evidence of the attempt, an `Unregistered` an event for producers."""

    receipts_max: int  # references in one question

    async def receipts(
        self, references: Sequence[str], *, timeout_seconds: float
    ) -> Mapping[str, Outcome] | None:
        """By reference, those that are there; one that is missing is asked for again later. None: no answer."""
        ...


@runtime_checkable
class NamesHosts(Protocol):
    """What a sender may have beside: its recipients name hosts of their own, so that one in trouble pauses alone."""

    def origin_of(self, recipient: str) -> str | None:
        """The host a recipient names, as a short key; None: it names none. Pure, and never raises."""
        ...


class SendCancelled(asyncio.CancelledError):
    """A send was cancelled. `reply` is classified like any other: its phase is what was reached, and it is
    `answered` where the response head had already come. Still a cancellation for whoever does not catch it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.error)
        self.reply = reply


class Senders(Protocol):
    """Finds the sender of a channel."""

    def sender(self, channel: Channel) -> Sender:
        """Raises `SenderUnavailable` for an unknown kind, bad settings or missing credentials."""
        ...

    async def wake(self) -> None:
        """Start of an invocation: drop connections that idled through a freeze."""
        ...

    async def close(self) -> None: ...


class SenderUnavailable(Exception):
    """This channel cannot send: one line why, without secrets. The channel is paused, its rows wait."""


@runtime_checkable
class RenewsCredentials(Protocol):
    """What `Senders` may do beside: look for other credentials when a provider refuses the ones there are."""

    async def renewed(self, channel: ChannelId) -> Sender | None:
        """The channel's sender with other credentials, where there are others by now; None: there are none, or it was
        asked a short while ago. Never raises."""
        ...


class Clock(Protocol):
    """Durations only: a monotonic clock in seconds."""

    def __call__(self) -> float: ...


__all__ = [
    "Access",
    "AccessUnavailable",
    "ChannelId",
    "Clock",
    "Facility",
    "NamesHosts",
    "NotMigrated",
    "Prepared",
    "Receipts",
    "RenewsCredentials",
    "SendCancelled",
    "Sender",
    "SenderUnavailable",
    "Senders",
    "Store",
    "StoreFailed",
]
