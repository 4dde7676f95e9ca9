"""`fencepost enqueue`: a file of notifications, or a stream of them."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from fencepost.core.operation import OperatorError, Refused, SchemaMissing
from fencepost_cli.database import operator
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_trouble

if TYPE_CHECKING:
    from fencepost.store.operator import Operator
    from fencepost_cli.intake import Intake

File = Annotated[
    str, typer.Argument(metavar="FILE.jsonl", help="One notification a line; - is stdin.")
]
Channel = Annotated[str | None, typer.Option("--channel", help="For lines that name none.")]
Atomic = Annotated[bool, typer.Option("--atomic", help="All or none, in one transaction.")]


def enqueue(
    file: File,
    channel: Channel = None,
    atomic: Atomic = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Enqueue a file. Bad lines are named with number and reason, good ones enqueued; exit code 1 if any was bad."""
    with _opened(file, spooled=atomic) as stream, operator(database_url) as database:
        intake, bad = _take(database, stream, file, channel, atomic=atomic, json=json)
    kept = not (atomic and intake.refused)
    if json:
        counts = {name: getattr(intake, name) for name in ("existing", "differing", "refused")}
        done = {"enqueued": intake.enqueued if kept else 0, **counts}
        print_json({**done, "atomic": atomic, "refused_lines": bad})
    else:
        print_line(_in_words(intake) if kept else f"nothing enqueued: {intake.refused} bad lines")
    if intake.refused:
        raise typer.Exit(ExitCode.REFUSED)


def _take(
    database: "Operator",
    stream: BinaryIO,
    file: str,
    channel: str | None,
    *,
    atomic: bool,
    json: bool,
) -> tuple["Intake", list[dict[str, object]]]:
    from fencepost.backfill.lines import read_lines
    from fencepost_cli.intake import SHOWN_MAX, Intake, take
    from fencepost_cli.progress import progress

    intake = Intake(ids_stand=not atomic)
    bad: list[dict[str, object]] = []

    def tell(number: int, fault: str) -> None:
        print_trouble(f"line {number}: {fault}")
        if len(bad) < SHOWN_MAX:
            bad.append({"line": number, "reason": fault})

    whole = database.all_or_none(lambda: not intake.refused) if atomic else nullcontext()
    try:
        with progress(f"enqueue {file}", _size(file), quiet=json) as advance, whole:
            take(
                database,
                read_lines(stream, channel),
                tell,
                lambda batch: advance(batch.size),
                intake,
            )
    except (Refused, SchemaMissing):
        print_trouble(_what_is_done(0 if atomic else intake.through))
        raise
    except (OperatorError, KeyboardInterrupt):
        print_trouble(_where_it_stopped(intake, atomic=atomic))
        raise
    return intake, bad


def _what_is_done(through: int) -> str:
    """Where the database said no: nothing was written of what it refused."""
    return f"stopped: lines 1 to {through} are done" if through else "stopped: nothing is enqueued"


def _where_it_stopped(intake: "Intake", *, atomic: bool) -> str:
    if atomic:
        return "stopped: nothing is enqueued, unless the very last word of the transaction was lost"
    return (
        f"stopped: lines 1 to {intake.through} are done; of the next batch nobody knows "
        "(lines with a dedupe_key may safely be enqueued again)"
    )


@contextmanager
def _opened(file: str, *, spooled: bool) -> Iterator[BinaryIO]:
    """Stdin is copied to a file first where a transaction would wait for whoever writes to it."""
    if file != "-":
        with _file(file) as stream:
            yield stream
    elif not spooled:
        yield sys.stdin.buffer
    else:
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.seek(0)
            yield copy


def _file(name: str) -> BinaryIO:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise CommandFailed(f"{name}: {error.strerror or 'cannot be read'}") from None


def _size(file: str) -> int | None:
    path = Path(file)
    return path.stat().st_size if file != "-" and path.is_file() else None


def _in_words(intake: "Intake") -> str:
    parts = [f"{intake.enqueued} enqueued"]
    if intake.existing:
        parts.append(
            f"{intake.existing} were there already ({intake.differing} with another content)"
        )
    if intake.refused:
        parts.append(f"{intake.refused} bad lines left out")
    return ", ".join(parts)
