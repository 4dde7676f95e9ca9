"""All that is known of one notification, as the database tells it. Instants are its text; Python counts none."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fencepost.core.channel import AttemptPolicy
from fencepost.core.exchange import Verdict
from fencepost.core.notification import AttemptOutcome, Kind, OnUncertain
from fencepost.core.reply import Phase


class ChannelStanding(Struct, frozen=True, kw_only=True):
    """Its channel now. Paused without `paused_for_seconds`: until somebody resumes it."""

    name: str
    sender: str
    on_uncertain: OnUncertain
    policy: AttemptPolicy
    revision: int
    paused: bool
    paused_for_seconds: float | None
    pause_reason: str | None
    skip_reason: str | None = None  # why the last run that looked cannot send on it
    skipped_at: str | None = None  # since when


class OpenStanding(Struct, frozen=True, kw_only=True):
    """Its row in the queue. `run`: who holds it, or held it when its lease ran out (lease_left < 0)."""

    fence: int
    attempts: int
    interruptions: int
    doubt: bool
    resend: bool  # an operator's word over every policy and window for doubt
    due_at: str | None
    due_in_seconds: float | None
    run: str | None
    invocation: str | None
    claimed_at: str | None
    lease_until: str | None
    lease_left_seconds: float | None


class ClosedStanding(Struct, frozen=True, kw_only=True):
    kind: Kind
    reason: str | None
    at: str
    fence: int
    attempts: int


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """One attempt. `taken_over`: written by the one who took the lease, not by its run."""

    fence: int
    run: str | None
    invocation: str | None
    run_deadline_at: str | None
    run_ended_at: str | None
    claimed_at: str | None
    at: str
    took_ms: int | None
    outcome: AttemptOutcome
    phase: Phase | None
    status: int | None
    reference: str | None
    digest: str | None
    detail: str | None
    taken_over: bool
    closing: bool


class EvidenceRecord(Struct, frozen=True, kw_only=True):
    """A fact learnt outside a lease. Fence 0: of an attempt nobody could name."""

    fence: int
    run: str | None
    source: str
    outcome: AttemptOutcome
    at: str
    reference: str | None
    detail: str | None


class OperationRecord(Struct, frozen=True, kw_only=True):
    """What was done to it outside any run, and on whose word. `fence`: raised to, or left at."""

    at: str
    what: str
    was: str | None
    who: str | None
    why: str | None
    fence: int = 0


class JournalRecord(Struct, frozen=True, kw_only=True):
    """One exchange that mentioned it. No verdict: it was not settled there. `fence`: of the word that was."""

    run: str
    seq: int
    at: str
    claimed: bool
    renewed: bool
    lost: bool
    verdict: Verdict | None
    fence: int | None = None


class Inspection(Struct, frozen=True, kw_only=True):
    """Open or closed, never both (G3). Recipient, dedupe key and payload only where they were asked for (G10)."""

    id: int
    now: str
    idempotency_key: str
    priority: int
    replay_of: int | None
    on_uncertain: OnUncertain | None
    created_at: str | None
    due_at: str | None
    expires_at: str | None
    expires_in_seconds: float | None
    recipient: str | None
    dedupe_key: str | None
    payload: Mapping[str, Any] | None
    channel: ChannelStanding
    open: OpenStanding | None
    closed: ClosedStanding | None
    attempts: tuple[AttemptRecord, ...]
    evidence: tuple[EvidenceRecord, ...]
    journal: tuple[JournalRecord, ...]
    operations: tuple[OperationRecord, ...]
