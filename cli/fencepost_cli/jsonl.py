"""Notifications from JSON lines: one a line, each good or named with its fault, never more than one line in memory."""

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, BinaryIO

import msgspec

from fencepost.core.duration import seconds_in

LINE_BYTES_MAX = 4 * 1024 * 1024  # four times the largest payload a channel can allow
CHUNK_BYTES = 64 * 1024


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line. Durations as seconds or as 90s, 5m, 2h, 3d; instants with a time zone."""

    recipient: str
    payload: dict[str, Any]
    channel: str | None = None
    due_at: datetime | None = None
    delay: str | float | None = None
    expires_at: datetime | None = None
    ttl: str | float | None = None
    priority: int | None = None
    dedupe_key: str | None = None
    on_uncertain: str | None = None
    replay_of: int | None = None


@dataclass(frozen=True, slots=True)
class Good:
    """A line as the words of a new notification. `size` in bytes of the line."""

    number: int
    words: Mapping[str, Any]
    size: int


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that cannot be enqueued: why, without a value of it."""

    number: int
    fault: str
    size: int


def read_lines(stream: BinaryIO, channel: str | None) -> Iterator[Good | Bad]:
    """Every line that is not blank, numbered from 1. `channel` is for lines that name none."""
    for number, (text, size) in enumerate(_raw_lines(stream), 1):
        if text is None:
            yield Bad(number, f"longer than {LINE_BYTES_MAX} bytes", size)
        elif text.strip():
            yield _read(number, text, channel)


def _raw_lines(stream: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Each line and its size; None in place of one that is too long, which is read past."""
    first = True
    while line := stream.readline(LINE_BYTES_MAX + 1):
        size = len(line)
        if size > LINE_BYTES_MAX and not line.endswith(b"\n"):
            yield None, size + _read_past(stream)
        else:
            yield (line.removeprefix(codecs.BOM_UTF8) if first else line), size
        first = False


def _read_past(stream: BinaryIO) -> int:
    size = 0
    while rest := stream.readline(CHUNK_BYTES):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return size


def _read(number: int, text: bytes, channel: str | None) -> Good | Bad:
    try:
        line = msgspec.json.decode(text, type=Line)
        return Good(number, _words(line, channel), len(text))
    except msgspec.ValidationError as error:
        return Bad(number, _one_line(str(error)), len(text))
    except msgspec.DecodeError as error:
        return Bad(number, _not_json(text, error), len(text))
    except RecursionError:
        return Bad(number, "nested too deeply", len(text))
    except ValueError as error:
        return Bad(number, _one_line(str(error)), len(text))


def _words(line: Line, channel: str | None) -> dict[str, Any]:
    words: dict[str, Any] = {name: getattr(line, name) for name in line.__struct_fields__}
    if line.channel is None:
        words["channel"] = channel
    if words["channel"] is None:
        raise ValueError("channel: is missing, and there is no --channel")
    return {**words, "delay": _duration("delay", line.delay), "ttl": _duration("ttl", line.ttl)}


def _duration(name: str, value: str | float | None) -> timedelta | None:
    if value is None:
        return None
    try:
        return timedelta(seconds=seconds_in(value) if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        raise ValueError(f"{name}: must be seconds, or 90s, 5m, 2h, 3d") from None


def _not_json(text: bytes, error: msgspec.DecodeError) -> str:
    if b"\\ud" in text.lower():
        return "not JSON, or it holds a lone surrogate"
    return f"not JSON: {_one_line(str(error))}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
