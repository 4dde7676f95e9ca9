"""Notifications from JSON lines: one a line, each good or named with its fault, in batches that bound the memory.

Reading can begin in mid-file, where an earlier reader stopped (`Place`), also within a line that is too long to keep.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from fencepost.backfill.ports import Readable
from fencepost.backfill.shape import one_line, shape_fault
from fencepost.core.command import START, Place
from fencepost.core.duration import seconds_in

LINE_BYTES_MAX = 4 * 1024 * 1024  # four times the largest payload a channel can allow
CHUNK_BYTES = 1024 * 1024
BATCH_LINES_MAX = 1000
BATCH_BYTES_MAX = 4 * 1024 * 1024  # memory, and the longest that one statement keeps others waiting


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
    words: Mapping[str, Any] = field(repr=False)
    size: int
    text: bytes = field(default=b"", repr=False)  # as it stood there


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that cannot be enqueued: why, without a value of it. `open`: it goes on behind what was read."""

    number: int
    fault: str
    size: int
    open: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """More of a line that was too long, or a blank one. `open`: the line goes on behind it."""

    number: int
    size: int
    open: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """`end`: where the next one begins."""

    good: list[Good]
    bad: list[Bad]
    size: int
    end: Place


def read_lines(
    stream: Readable, channel: str | None, start: Place = START
) -> Iterator[Good | Bad | Rest]:
    """All that is there from `start` on, every byte in exactly one of them. `channel` is for lines that name none."""
    number, inside = start.line, start.inside
    while text := stream.readline(CHUNK_BYTES if inside else LINE_BYTES_MAX + 1):
        whole = text.endswith(b"\n")
        if inside:
            yield Rest(number, len(text), open=not whole)
            inside = not whole
            continue
        number += 1
        inside = len(text) > LINE_BYTES_MAX and not whole
        yield _too_long(number, text) if inside else _item(number, text, channel)


def batches(
    lines: Iterable[Good | Bad | Rest],
    start: Place = START,
    *,
    lines_max: int = BATCH_LINES_MAX,
    bytes_max: int = BATCH_BYTES_MAX,
) -> Iterator[Batch]:
    """In the order of the file, as many as fit."""
    good: list[Good] = []
    bad: list[Bad] = []
    size, place = 0, start
    for line in lines:
        match line:
            case Good():
                good.append(line)
            case Bad():
                bad.append(line)
        size += line.size
        place = Place(
            byte=place.byte + line.size,
            line=line.number,
            inside=not isinstance(line, Good) and line.open,
        )
        if len(good) + len(bad) >= lines_max or size >= bytes_max:
            yield Batch(good, bad, size, place)
            good, bad, size = [], [], 0
    if size:
        yield Batch(good, bad, size, place)


def read_row(number: int, text: bytes, channel: str | None) -> Good | Bad:
    """One row as JSON text."""
    try:
        line = msgspec.json.decode(text, type=Line)
        return Good(number, _words(line, channel), len(text), text)
    except msgspec.ValidationError as error:
        return Bad(number, shape_fault(error), len(text))
    except msgspec.DecodeError as error:
        return Bad(number, _not_json(text, error), len(text))
    except RecursionError:
        return Bad(number, "nested too deeply", len(text))
    except ValueError as error:
        return Bad(number, one_line(str(error)), len(text))


def _item(number: int, text: bytes, channel: str | None) -> Good | Bad | Rest:
    bare = text.removeprefix(codecs.BOM_UTF8) if number == 1 else text
    if not bare.strip():
        return Rest(number, len(text))
    return replace(read_row(number, bare, channel), size=len(text))


def _too_long(number: int, text: bytes) -> Bad:
    return Bad(number, f"longer than {LINE_BYTES_MAX} bytes", len(text), open=True)


def _words(line: Line, channel: str | None) -> dict[str, Any]:
    words: dict[str, Any] = {name: getattr(line, name) for name in line.__struct_fields__}
    if line.channel is None:
        words["channel"] = channel
    if words["channel"] is None:
        raise ValueError("channel: is missing, and there is none for lines that name none")
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
    return f"not JSON: {one_line(str(error))}"
