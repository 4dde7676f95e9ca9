"""Messages into commands: JSON, versioned, every key and type checked; and commands into messages.

What is wrong with a message is one line that names the place in it and never repeats a value. docs/backfill.md
tells the format to people.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from fencepost.backfill.choosing import chosen, storable
from fencepost.backfill.shape import WORD, shape_fault
from fencepost.backfill.wire import (
    DrainWire,
    EnqueueWire,
    EvidenceWire,
    FactWire,
    RedriveWire,
    ReplayWire,
    ResolveWire,
    Wire,
    Wires,
)
from fencepost.core.command import (
    RESOLVING,
    Command,
    CommandId,
    CommandRefused,
    Drain,
    Enqueue,
    Evidence,
    Label,
    Move,
    Replay,
    S3Object,
    Told,
    Word,
)
from fencepost.core.exchange import Facts
from fencepost.core.message import VERSION
from fencepost.core.notification import Fence, Held, NotificationId, RunId

BODY_BYTES_MAX = 1024 * 1024  # as much as SQS takes

NAMES = ("enqueue", "redrive", "replay", "resolve", "drain", "evidence")

Decoded = TypeVar("Decoded")


def read_command(body: str) -> Command:
    """What a message asks for. Raises `CommandRefused` for everything that is no command of this version."""
    text = _encoded(body)
    try:
        return _read(text)
    except RecursionError:
        raise CommandRefused("the message is nested too deeply") from None


def _read(text: bytes) -> Command:
    said = _checked(text, lambda: msgspec.json.decode(text))
    if not isinstance(said, dict):
        raise CommandRefused("the message is no JSON object")
    _check_version(said)
    _check_name(said)
    wire = _checked(text, lambda: msgspec.json.decode(text, type=Wires))
    return _meaning(wire, said)


def command_message(words: Mapping[str, Any]) -> str:
    """The message of a command. ASCII: no character a queue would refuse."""
    return json.dumps({"version": VERSION, **words}, separators=(",", ":"))


def continuation_message(label: Label) -> str:
    """The message that carries it on. The place it got to is in the database, under the command's id."""
    return command_message({**label.said, "continuation": label.continuation + 1})


def _encoded(body: str) -> bytes:
    try:
        text = body.encode()
    except UnicodeEncodeError:
        raise CommandRefused("the message holds a lone surrogate") from None
    if len(text) > BODY_BYTES_MAX:
        raise CommandRefused(f"the message is longer than {BODY_BYTES_MAX} bytes")
    return text


def _checked(text: bytes, decode: Callable[[], Decoded]) -> Decoded:
    try:
        return decode()
    except msgspec.ValidationError as error:
        raise CommandRefused(shape_fault(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise CommandRefused(f"the message is not JSON ({len(text)} bytes)") from None


def _check_version(said: Mapping[str, Any]) -> None:
    version = said.get("version", said.get("fencepost"))
    if version is None:
        raise CommandRefused("the message has no version")
    if type(version) is not int or version != VERSION:
        raise CommandRefused(f"the message is not of version {VERSION}, the only one known here")


def _check_name(said: Mapping[str, Any]) -> None:
    name = said.get("command")
    if name is None:
        raise CommandRefused("the message has no command")
    if name not in NAMES:
        shown = f" {name}" if isinstance(name, str) and WORD.fullmatch(name) else ""
        raise CommandRefused(f"unknown command{shown}: known here are {', '.join(NAMES)}")


def _meaning(wire: Wires, said: Mapping[str, Any]) -> Command:
    match wire:
        case EvidenceWire():
            return _evidence(wire)
        case EnqueueWire():
            return _enqueue(wire, _label(wire, said))
        case RedriveWire():
            return _redrive(wire, _label(wire, said))
        case ResolveWire():
            return _resolve(wire, _label(wire, said))
        case ReplayWire():
            which = chosen(wire.ids, wire.select, kinds=())
            return Replay(label=_label(wire, said), **which)
        case DrainWire():
            return Drain(label=_label(wire, said))


def _label(wire: Wire, said: Mapping[str, Any]) -> Label:
    words = {name: value for name, value in said.items() if name not in ("version", "continuation")}
    exact = json.dumps(words, sort_keys=True, separators=(",", ":")).encode()
    return Label(
        id=CommandId(wire.id),
        digest=hashlib.sha256(exact).digest()[:16],
        continuation=wire.continuation,
        said=words,
    )


def _enqueue(wire: EnqueueWire, label: Label) -> Enqueue:
    if (wire.rows is None) == (wire.s3 is None):
        raise CommandRefused("enqueue: say rows or s3, one of them")
    file = None
    if wire.s3 is not None:
        file = S3Object(bucket=wire.s3.bucket, key=wire.s3.key, version=wire.s3.version)
        storable(key=file.key)
    storable(channel=wire.channel)
    return Enqueue(
        label=label,
        rows=None if wire.rows is None else tuple(bytes(row) for row in wire.rows),
        file=file,
        channel=wire.channel,
        atomic=wire.atomic,
    )


def _redrive(wire: RedriveWire, label: Label) -> Move:
    storable(why=wire.why)
    kinds = ("dead", "uncertain") if wire.resend else ("dead",)
    word = Word.RESEND if wire.resend else Word.REDRIVE
    which = chosen(wire.ids, wire.select, kinds=kinds)
    return Move(label=label, what="redrive", word=word, why=wire.why, **which)


def _resolve(wire: ResolveWire, label: Label) -> Move:
    if not wire.why.strip():
        raise CommandRefused("why: it is empty, and nobody could tell later how it was known")
    storable(why=wire.why)
    which = chosen(wire.ids, wire.select, kinds=("uncertain",))
    word = RESOLVING[wire.resolution]
    return Move(label=label, what="resolve", word=word, why=wire.why, **which)


def _evidence(wire: EvidenceWire) -> Evidence:
    return Evidence(
        installation=wire.installation,
        run=RunId(wire.run),
        facts=tuple(_told(fact) for fact in wire.facts),
    )


def _told(wire: FactWire) -> Told:
    facts = Facts(
        phase=wire.phase,
        status=wire.status,
        reference=wire.reference,
        took_ms=wire.took_ms,
        detail=wire.detail,
    )
    held = Held(NotificationId(wire.notification), Fence(wire.fence))
    return Told(held, wire.outcome, facts, wire.unregistered)
