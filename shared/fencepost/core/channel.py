"""A channel: a named way out, its limits and its policies."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fencepost.core.notification import ChannelId, OnUncertain


class AttemptPolicy(Struct, frozen=True, kw_only=True):
    """How often and how long a notification is tried. Seconds."""

    attempts_max: int = 8
    interruptions_max: int = 3  # then it is parked as poison
    backoff_base_seconds: float = 5.0
    backoff_cap_seconds: float = 3600.0
    age_max_seconds: float = 86400.0  # refunded attempts (not sent, throttled) end here
    retry_after_max_seconds: float = 3600.0
    unregistered_max: int = (
        20  # of the last 50 answers: more look like a wrong key, and pause the channel
    )


class Channel(Struct, frozen=True, kw_only=True):
    """A channel as `start_run` answers it."""

    id: ChannelId
    name: str
    sender: str  # sender kind: webhook, …
    settings: Mapping[str, Any]  # not secret; the sender's own
    secret_reference: (
        str | None
    )  # where the credentials are (env:NAME, file:PATH, …), never the secret
    slots: int  # sends in flight a run
    rate_per_second: float | None  # shared by all runs; None: no limit
    on_uncertain: OnUncertain
    policy: AttemptPolicy
    revision: int  # raised by every operator's change
    paused_for_seconds: float  # 0: open
    pause_reason: str | None  # a breaker's, also for a while after: the next send is its probe
    skipped: str | None = None  # why the runs before could not send on it, as far as they told


class Skip(Struct, frozen=True):
    """What a run found of a channel: why it cannot send on it, or None: it can, although another could not."""

    channel: ChannelId
    revision: int
    reason: str | None


class Facility(Struct, frozen=True):
    """What the provider offers against a duplicate."""

    deduplicates_for_seconds: float | None = (
        None  # a repeat with the same key is dropped this long; None: no key
    )
    collapses: bool = False  # a repeat replaces the first on the screen
    can_be_asked: bool = False  # `ask` works
    evidence_within_seconds: float | None = (
        None  # it tells by itself (callback, event) what became of a send; later than this it is silent
    )

    @property
    def reconciles(self) -> bool:
        """Whether waiting or asking can clear a doubt: else the policy `reconcile` means nothing."""
        return self.can_be_asked or self.evidence_within_seconds is not None

    @property
    def nothing(self) -> bool:
        key = self.deduplicates_for_seconds is not None
        return not (key or self.collapses or self.reconciles)
