"""A command of a backfill as a value: what one message asks for.

A command is idempotent by its id: however often, late or in whatever order its messages come, its work is done once.
`said` are its words as they came, so that a continuation says the same; `digest` tells two commands apart that share
an id by mistake. Instants travel as text: they are the database's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

from fencepost.core.bound import OPEN_END, Bound
from fencepost.core.exchange import Facts
from fencepost.core.notification import AttemptOutcome, Held, RunId
from fencepost.core.operation import Resolution

CommandId = NewType("CommandId", UUID)


class CommandRefused(Exception):
    """This command will never be done as it is: one line, without a value of a notification."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file the next line begins, after so many. `inside`: in the rest of a line that was too long."""

    byte: int = 0
    line: int = 0
    inside: bool = False


START = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What every command has. `continuation`: 0 for the first message, 1 for the one that carries it on…"""

    id: CommandId
    digest: bytes
    continuation: int = 0
    said: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """Which notifications, where no ids are given."""

    channel: str | None = None
    kinds: tuple[str, ...] = ()
    reason: str | None = None
    since: Bound = OPEN_END
    until: Bound = OPEN_END


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    """A file of JSON lines in S3. No version: the newest when the command begins, held to by its ETag."""

    bucket: str
    key: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """Rows of the message itself (each as JSON text), or a file. `channel` is for rows that name none."""

    label: Label
    rows: tuple[bytes, ...] | None = field(default=None, repr=False)
    file: S3Object | None = None
    channel: str | None = None
    atomic: bool = False


class Word(StrEnum):
    """What is said of the notifications a move means."""

    REDRIVE = "redrive"
    RESEND = "resend"
    DELIVERED = "delivered"
    NOT_DELIVERED = "not_delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Redrive parked ones, or say what became of uncertain ones. By ids, or by selector (`ids` None)."""

    label: Label
    what: str  # redrive or resolve
    word: Word
    ids: tuple[int, ...] | None = None
    select: Select = field(default_factory=Select)
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Delivered ones again, as new notifications linked to the old. The range is of when they were delivered."""

    label: Label
    ids: tuple[int, ...] | None = None
    select: Select = field(default_factory=Select)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Run the worker now, with the same leases as the schedule's runs."""

    label: Label


@dataclass(frozen=True, slots=True)
class Told:
    """One fact of a run about one of its sends."""

    held: Held
    outcome: AttemptOutcome
    facts: Facts
    gone: bool = False  # the recipient is


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run knew and could not say (core/message.py). Idempotent by itself."""

    installation: str
    run: RunId
    facts: tuple[Told, ...]


Lasting = Enqueue | Move | Replay  # done in pages, over as many messages as it takes
Command = Lasting | Drain | Evidence

RESOLVING = {
    Resolution.DELIVERED: Word.DELIVERED,
    Resolution.NOT_DELIVERED: Word.NOT_DELIVERED,
    Resolution.DEAD: Word.DEAD,
    Resolution.RESEND: Word.RESEND,
}


def what_of(command: Lasting | Drain) -> str:
    """The command's name, as messages and the database have it."""
    match command:
        case Enqueue():
            return "enqueue"
        case Move(what=what):
            return what
        case Replay():
            return "replay"
        case Drain():
            return "drain"
