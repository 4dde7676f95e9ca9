"""`fencepost backfill enqueue`: a file of notifications as commands of an enqueue."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO
from urllib.parse import urlsplit

import typer

from fencepost_cli import backfill_message as message
from fencepost_cli import selecting
from fencepost_cli.backfill_way import Id, QueueUrl, Way
from fencepost_cli.enqueue import Channel
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_trouble
from fencepost_cli.progress import progress

if TYPE_CHECKING:
    from fencepost.backfill.lines import Batch
    from fencepost.core.backfill import Paged

SHOWN_MAX = 100
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE.jsonl", help="One notification a line: a file, or s3://BUCKET/KEY."
    ),
]
Atomic = Annotated[
    bool, typer.Option("--atomic", help="All or none, in one transaction (s3: up to 10,000 lines).")
]


def enqueue(
    file: File,
    channel: Channel = None,
    atomic: Atomic = False,
    id: Id = None,
    queue_url: QueueUrl = None,
    dry_run: selecting.DryRun = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Enqueue a file. One in S3 is one command that carries itself on; a local one becomes as many as it needs."""
    way = Way("enqueue", queue_url, database_url, id)
    if file.startswith("s3://"):
        if dry_run:
            raise CommandFailed("a dry run reads a local file only", ExitCode.USAGE)
        return way.go([_of_s3(way, file, channel, atomic)], json=json)
    if file == "-":
        raise CommandFailed(
            "a file is needed, to be read again under the same --id; of stdin: fencepost enqueue -",
            ExitCode.USAGE,
        )
    if atomic:
        raise CommandFailed(
            "--atomic is for a file in S3; of a local one: fencepost enqueue --atomic",
            ExitCode.USAGE,
        )
    local = Local(Path(file), channel, json)
    if dry_run:
        return local.count()
    return local.go(way)


def _of_s3(way: Way, url: str, channel: str | None, atomic: bool) -> message.Words:
    parts = urlsplit(url)
    if not (parts.netloc and parts.path.strip("/")):
        raise CommandFailed(f"{url} names no object: s3://BUCKET/KEY", ExitCode.USAGE)
    words: dict[str, object] = {"s3": {"bucket": parts.netloc, "key": parts.path.removeprefix("/")}}
    if channel:
        words["channel"] = channel
    if atomic:
        words["atomic"] = True
    return {"command": "enqueue", "id": str(way.id), **words}


class Local:
    """A file of this machine, line by line. Bad lines are named and left out."""

    def __init__(self, path: Path, channel: str | None, json: bool) -> None:
        self._path, self._channel, self._json = path, channel, json
        self._good = 0
        self._bad: list[dict[str, object]] = []
        self._refused = 0
        self._lines: list[int] = []  # what the rows of the message under way were

    def count(self) -> None:
        for _ in self._batches():
            pass
        _say_dry(self._good, self._refused, self._json)
        self._end()

    def go(self, way: Way) -> None:
        went = way.gone(self._messages(way), self._see)
        went.counts["refused"] += self._refused
        way.say(went, self._json, {"refused_lines": self._bad})
        self._refused = went.counts["refused"]
        self._end()

    def _messages(self, way: Way) -> Iterator[message.Words]:
        numbers = count()
        for batch in self._batches():
            for words, lines in message.enqueueing(way.id, numbers, batch, self._channel):
                self._lines = lines
                yield words

    def _see(self, page: "Paged") -> None:
        """What the database found bad in it."""
        for row, fault in page.faults:
            self._tell(self._lines[row - 1], fault)

    def _batches(self) -> "Iterator[Batch]":
        from fencepost.backfill.lines import batches, read_lines

        with self._opened() as stream:
            size = self._path.stat().st_size
            with progress(f"enqueue {self._path}", size, quiet=self._json) as advance:
                for batch in batches(read_lines(stream, self._channel)):
                    self._note(batch)
                    yield batch
                    advance(batch.size)

    def _note(self, batch: "Batch") -> None:
        self._good += len(batch.good)
        self._refused += len(batch.bad)
        for line in batch.bad:
            self._tell(line.number, line.fault)

    def _tell(self, line: int, fault: str) -> None:
        print_trouble(f"line {line}: {fault}")
        if len(self._bad) < SHOWN_MAX:
            self._bad.append({"line": line, "reason": fault})

    def _opened(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            reason = error.strerror or "cannot be read"
            raise CommandFailed(f"{self._path}: {reason}") from None

    def _end(self) -> None:
        if self._refused:
            raise typer.Exit(ExitCode.REFUSED)


def _say_dry(good: int, bad: int, json: bool) -> None:
    from fencepost_cli.output import print_json, print_line

    if json:
        print_json({"dry_run": True, "would": "enqueue", "count": good, "bad": bad})
    else:
        print_line(f"would enqueue {good}" + (f", {bad} bad lines left out" if bad else ""))
