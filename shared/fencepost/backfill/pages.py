"""Pages of a command. Of an enqueue: rows of the message itself, or lines of a file from where it got to before."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from fencepost.backfill.lines import Bad, Batch, Good, batches, read_lines, read_row
from fencepost.backfill.ports import Commands, Objects
from fencepost.core.backfill import Paged, Turn
from fencepost.core.command import CommandRefused, Enqueue, Place, S3Object

PAGE = 1000  # rows of one transaction
ATOMIC_LINES_MAX = 10_000  # of a file that is enqueued all or none: one transaction
ATOMIC_BYTES_MAX = 16 * 1024 * 1024


def pages_from(turn: Turn, page: Callable[[Turn], Paged]) -> Iterator[Paged]:
    """One page after the other, each from the place the one before it got to."""
    while True:
        done = page(turn)
        yield done
        turn = replace(turn, place=done.place)


def enqueue_pages(
    commands: Commands, objects: Objects, command: Enqueue, turn: Turn
) -> Iterator[Paged]:
    """Until a page ends the command or is stale. Raises `CommandRefused` and `SourceAway`."""
    if command.file is not None:
        yield from _of_file(commands, objects, command, command.file, turn)
    else:
        yield from _of_rows(commands, command, turn)


def _of_rows(commands: Commands, command: Enqueue, turn: Turn) -> Iterator[Paged]:
    rows = command.rows or ()
    size = len(rows) if command.atomic else PAGE
    begin = int(turn.place.get("rows", 0))
    while True:
        end = min(begin + size, len(rows))
        numbered = enumerate(rows[begin:end], begin + 1)
        read = [read_row(number, text, command.channel) for number, text in numbered]
        yield commands.enqueue(
            turn,
            [(row.number, row.words) for row in read if isinstance(row, Good)],
            [(row.number, row.fault) for row in read if isinstance(row, Bad)],
            {"rows": end},
            last=end == len(rows),
            atomic=command.atomic,
        )
        begin = end


def _of_file(
    commands: Commands, objects: Objects, command: Enqueue, file: S3Object, turn: Turn
) -> Iterator[Paged]:
    start = _place(turn.place)
    opened = objects.open(file, byte=start.byte, etag=turn.place.get("etag"))
    lines = read_lines(opened.stream, command.channel, start)
    if command.atomic:
        whole = batches(lines, start, lines_max=ATOMIC_LINES_MAX, bytes_max=ATOMIC_BYTES_MAX)
        batch = _only(whole)
        yield _said(commands, turn, batch, opened.etag, last=True, atomic=True)
        return
    end = start
    for batch in batches(lines, start):
        end = batch.end
        yield _said(commands, turn, batch, opened.etag, last=False)
    yield _said(commands, turn, Batch([], [], 0, end), opened.etag, last=True)


def _said(
    commands: Commands, turn: Turn, batch: Batch, etag: str, *, last: bool, atomic: bool = False
) -> Paged:
    place = {
        "byte": batch.end.byte,
        "line": batch.end.line,
        "inside": batch.end.inside,
        "etag": etag,
    }
    good = [(line.number, line.words) for line in batch.good]
    bad = [(line.number, line.fault) for line in batch.bad]
    page = commands.enqueue(turn, good, bad, place, last=last, atomic=atomic)
    return replace(page, size=batch.size)


def _only(whole: Iterator[Batch]) -> Batch:
    batch = next(whole, Batch([], [], 0, Place()))
    if next(whole, None) is not None:
        raise CommandRefused(
            f"atomic: a file of more than {ATOMIC_LINES_MAX} lines or {ATOMIC_BYTES_MAX} bytes is no one transaction"
        )
    return batch


def _place(place: Mapping[str, Any]) -> Place:
    return Place(
        byte=place.get("byte", 0), line=place.get("line", 0), inside=place.get("inside", False)
    )
