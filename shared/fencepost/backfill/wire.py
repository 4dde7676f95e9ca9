"""The messages of a backfill as they travel: every key and every type that is allowed, and no other."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from fencepost.core.notification import AttemptOutcome
from fencepost.core.operation import Resolution
from fencepost.core.reply import Phase

BIGGEST = 2**63 - 1

Id = Annotated[int, Meta(ge=1, le=BIGGEST)]
Text = Annotated[str, Meta(max_length=500)]
Name = Annotated[str, Meta(max_length=63)]


class Wire(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command"):
    """What every command says."""

    version: int
    id: UUID
    continuation: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which notifications. An instant with its time zone, or a duration back from when the command begins."""

    channel: Name | None = None
    reason: Text | None = None
    since: Text | None = None
    until: Text | None = None
    kinds: tuple[Literal["dead", "uncertain"], ...] | None = None


class File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bucket: Annotated[str, Meta(min_length=3, max_length=255)]
    key: Annotated[str, Meta(min_length=1, max_length=1024)]
    version: Text | None = None


class EnqueueWire(Wire, frozen=True, kw_only=True, tag="enqueue"):
    rows: tuple[msgspec.Raw, ...] | None = None
    s3: File | None = None
    channel: Name | None = None
    atomic: bool = False


class RedriveWire(Wire, frozen=True, kw_only=True, tag="redrive"):
    ids: tuple[Id, ...] | None = None
    select: Range | None = None
    resend: bool = False
    why: Text | None = None


class ResolveWire(Wire, frozen=True, kw_only=True, tag="resolve"):
    resolution: Resolution
    why: Text
    ids: tuple[Id, ...] | None = None
    select: Range | None = None


class ReplayWire(Wire, frozen=True, kw_only=True, tag="replay"):
    ids: tuple[Id, ...] | None = None
    select: Range | None = None


class DrainWire(Wire, frozen=True, kw_only=True, tag="drain"):
    pass


class FactWire(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    notification: Id
    fence: Id
    outcome: AttemptOutcome
    phase: Phase | None = None
    status: int | None = None
    reference: str | None = None
    digest: str | None = None
    took_ms: int | None = None
    detail: str | None = None
    unregistered: bool = False


class EvidenceWire(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="command",
    tag="evidence",
):
    """As core/message.py writes it: without an id, because evidence is idempotent by itself."""

    fencepost: int
    installation: str
    run: UUID
    facts: tuple[FactWire, ...]


Wires = EnqueueWire | RedriveWire | ResolveWire | ReplayWire | DrainWire | EvidenceWire
