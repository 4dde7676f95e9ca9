"""The other side: a provider with a ledger of its own. It drops a repeated key for a while, or it does not."""

from dataclasses import dataclass, field
from random import Random
from typing import Protocol
from uuid import UUID

from fencepost.core.channel import Facility
from fencepost.core.notification import ChannelId, Claimed, Held, NotificationId, RunId
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from tests.simulation.faults import Fault, Plan

HOSTS = ("host-0", "host-1", "host-2")  # what the recipients name


@dataclass(slots=True, kw_only=True)
class Sending:
    """One send and its fate, drawn when it starts: the truth that runs, callbacks and operators learn bits of."""

    run: RunId
    claimed: Claimed
    began_at: float
    digest: bytes
    replies_at: float
    outcome: Outcome
    accepted_at: float | None = None  # None: never
    left: bool = True  # a byte left
    replied: bool = False

    @property
    def held(self) -> Held:
        return self.claimed.held


@dataclass(slots=True)
class Ledger:
    """Every send of every notification, in order."""

    sendings: dict[NotificationId, list[Sending]] = field(default_factory=dict)
    keys: dict[NotificationId, UUID] = field(default_factory=dict)

    def of(self, id: NotificationId) -> list[Sending]:
        return self.sendings.get(id, [])

    def add(self, sending: Sending) -> None:
        self.sendings.setdefault(sending.claimed.id, []).append(sending)

    def accepted(self, id: NotificationId) -> list[float]:
        return sorted(s.accepted_at for s in self.of(id) if s.accepted_at is not None)

    def effects(self, id: NotificationId, facility: Facility) -> int:
        """How often the recipient got it: repeats inside the key window are dropped."""
        window, effects, remembered_until = facility.deduplicates_for_seconds, 0, float("-inf")
        for at in self.accepted(id):
            if at >= remembered_until:
                effects += 1
                remembered_until = at + (window or 0.0)
        return effects


class Chance(Protocol):
    """What a fate is drawn from."""

    plan: Plan
    rng: Random
    now: float
    slowness: float
    dead_until: dict[tuple[ChannelId, str], float]


def fate(world: Chance, claimed: Claimed, run: RunId, timeout: float) -> Sending:
    """Draw what becomes of a send that starts now."""
    rng, now = world.rng, world.now
    quick = now + rng.uniform(world.slowness / 2, world.slowness) * timeout
    sending = Sending(
        run=run,
        claimed=claimed,
        began_at=now,
        digest=b"v1" * 8,
        replies_at=quick,
        outcome=Delivered("ref"),
        accepted_at=rng.uniform(now, quick),
    )
    fault, outcome = _dead(world, claimed) or _trouble(world.plan, rng)
    if fault is None:
        return sending
    sending.outcome, sending.accepted_at = outcome, None
    sending.left = not isinstance(outcome, NotSent)
    if fault is Fault.SLOW_SEND:
        sending.replies_at = now + timeout
        sending.accepted_at = now + timeout * rng.uniform(0.5, 2.0) if rng.random() < 0.5 else None
    if fault is Fault.OVERSHOOT:
        sending.replies_at = now + timeout * rng.uniform(1.0, 4.0)
        sending.accepted_at = rng.uniform(now, sending.replies_at)
    if fault is Fault.ACCEPT_THEN_DROP:
        sending.accepted_at = rng.uniform(now, quick)
    return sending


def _dead(world: Chance, claimed: Claimed) -> tuple[Fault, Outcome] | None:
    """A host, or the whole provider, that fails for a while: every send to it does."""
    if world.plan.strikes(Fault.DEAD_PROVIDER):
        until = world.now + world.rng.uniform(5.0, 60.0)
        hosts = (claimed.recipient,) if world.rng.random() < 0.5 else HOSTS
        world.dead_until.update({(claimed.channel, host): until for host in hosts})
    dead_until = world.dead_until.get((claimed.channel, claimed.recipient), world.now)
    if not world.plan.on or dead_until <= world.now:
        return None
    return Fault.DEAD_PROVIDER, world.rng.choice((NotSent("refused"), Failed("503")))


def _trouble(plan: Plan, rng: Random) -> tuple[Fault | None, Outcome]:
    wish = rng.choice((None, None, 0.0, 1.0, 5.0))
    table: tuple[tuple[Fault, Outcome], ...] = (
        (Fault.NOT_SENT, NotSent("refused")),
        (Fault.SLOW_SEND, Uncertain("timeout")),
        (Fault.OVERSHOOT, Delivered("at last")),
        (Fault.ACCEPT_THEN_DROP, Uncertain("reset")),
        (Fault.DROP, Uncertain("reset")),
        (Fault.THROTTLED, Throttled("429", wish, channel_wide=rng.random() < 0.7)),
        (Fault.FAILED, Failed("503", wish)),
        (Fault.REJECTED, Rejected("400")),
        (Fault.GONE, Unregistered("410")),
        (Fault.CREDENTIALS, CredentialFailure("401")),
    )
    for fault, outcome in table:
        if plan.strikes(fault):
            return fault, outcome
    return None, Delivered()
