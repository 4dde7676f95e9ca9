"""The command line: names, and the one place where errors become a line and an exit code."""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from fencepost.core.operation import OperatorError
from fencepost_cli import (
    backfill,
    bind,
    cancel,
    channel,
    enqueue,
    explain,
    migrate,
    prune,
    quarantine,
    redrive,
    retention,
    run,
    status,
    uncertain,
    unregistered,
)
from fencepost_cli.exit_code import CommandFailed, ExitCode, code_of
from fencepost_cli.output import PipeClosed, flush, print_line, print_trouble

app = typer.Typer(
    name="fencepost",
    help="Deliver notifications from PostgreSQL: neither lost nor doubled.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print_line(f"fencepost {version('fencepost')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", is_eager=True, callback=_say_version, help="Say the version and end."
    ),
]


@app.callback()
def options(version: Version = False) -> None:
    """Deliver notifications from PostgreSQL: neither lost nor doubled."""


app.command("migrate")(migrate.migrate)
app.command("bind")(bind.bind)
app.add_typer(channel.app, name="channel")
app.command("enqueue")(enqueue.enqueue)
app.add_typer(
    backfill.app, name="backfill", short_help="Bulk work as commands: to a queue, or done here."
)
app.command("run")(run.run)
app.command("status", short_help="What waits, is leased, in doubt or parked, by channel.")(
    status.status
)
app.command("explain", short_help="Why one did not arrive, and what happens next.")(explain.explain)
app.command("cancel")(cancel.cancel)
app.command("redrive")(redrive.redrive)
app.add_typer(uncertain.app, name="uncertain", short_help="Did it arrive? What is in doubt.")
app.add_typer(
    unregistered.app, name="unregistered", short_help="Recipients that providers say are gone."
)
app.command("quarantine", short_help="After a restore: put everything open in doubt.")(
    quarantine.quarantine
)
app.command("prune", short_help="Let go what is older than it is kept.")(prune.prune)
app.command("retention", short_help="How long things are kept.")(retention.retention)


def main() -> None:
    """Exit with the code of what was asked."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal without Unicode must not break an answer
            stream.reconfigure(errors="backslashreplace")
    sys.exit(answer(sys.argv[1:]))


def answer(arguments: Sequence[str]) -> int:
    """Never a traceback for what can be expected: one line on stderr and a code that means something."""
    try:
        code = _answer(arguments)
        flush()
    except PipeClosed:
        _forget_stdout()
        return ExitCode.PIPE_CLOSED
    return code


def _answer(arguments: Sequence[str]) -> int:
    try:
        code = app(args=list(arguments), prog_name="fencepost", standalone_mode=False)
    except typer.TyperException as error:
        return _usage(error)
    except typer.Abort:
        print_trouble("stopped")
        return ExitCode.INTERRUPTED
    except CommandFailed as error:
        print_trouble(str(error))
        return error.code
    except OperatorError as error:
        print_trouble(str(error))
        return code_of(error)
    return code if isinstance(code, int) else ExitCode.OK


def _usage(error: typer.TyperException) -> int:
    said = getattr(error, "format_message", lambda: str(error))()
    if said.startswith("Usage:"):
        sys.stderr.write(f"{said}\n")  # no command named: the help itself
    elif said:
        print_trouble(f"{said} (fencepost --help)")
    return int(getattr(error, "exit_code", ExitCode.USAGE))


def _forget_stdout() -> None:
    """The reader went away; the interpreter must not complain about it a second time while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
