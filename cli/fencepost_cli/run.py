"""`fencepost run`: the worker outside Lambda."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf, isinf
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.operation import NOT_MIGRATED, DatabaseAway
from fencepost_cli.database import check_owner
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import flush, print_json, print_line, print_trouble
from fencepost_cli.selecting import seconds

if TYPE_CHECKING:
    from fencepost.core.tally import Summary
    from fencepost.ports import StoreFailed
    from fencepost.settings import Settings
    from fencepost.telemetry import Lines
    from fencepost.worker import Worker
    from fencepost_cli.stopping import Stopping

CLAIMING_SECONDS = (
    10.0  # one run claims so long, then sends to an end: a signal waits for no more than that
)
Once = Annotated[bool, typer.Option("--once", help="Until nothing is due any more (the default).")]
Every = Annotated[
    str | None,
    typer.Option("--every", metavar="DURATION", help="Look again every 60s, until stopped."),
]
For = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="End after this time at the latest.")
]
Installation = Annotated[
    str | None,
    typer.Option(
        "--installation",
        envvar="FENCEPOST_INSTALLATION",
        show_default=False,
        help="The name this database must be bound to.",
    ),
]
Channels = Annotated[
    list[str] | None, typer.Option("--channel", help="Only this channel; may be repeated.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Every fact on stderr, not only trouble.")
]


def run(
    once: Once = False,
    every: Every = None,
    for_: For = None,
    channel: Channels = None,
    installation: Installation = None,
    verbose: Verbose = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Deliver what is due, here and now. SIGINT and SIGTERM end it cleanly: nothing stays leased."""
    if once and every is not None:
        raise typer.BadParameter("say --once or --every, not both")
    period, limit = seconds(every, "--every"), seconds(for_, "--for")
    if period == 0:
        raise typer.BadParameter("--every 0s would ask the database without a pause")
    settings = settings_of(database_url, installation, channel)
    needed = checked_limit(limit, settings)

    from fencepost.bootstrap import make_worker
    from fencepost_cli.stopping import Stopping

    with Stopping() as stopping:
        make = partial(make_worker, settings, lines=plain_trouble(verbose=verbose))
        check = partial(check_owner, database_url, settings.installation)
        rounds = Rounds(make, check, stopping, needed=needed, json=json)
        rounds.go(period, limit)
    if period is None and rounds.stuck:
        raise typer.Exit(ExitCode.REFUSED)  # what is due waits for somebody to put things right


def plain_trouble(*, verbose: bool = False) -> "Lines":
    """A run's lines on stderr, but the one that the command tells itself."""
    from fencepost.core.line import Level, Line
    from fencepost.telemetry import plain_lines

    lines = plain_lines(print_trouble, Level.DEBUG if verbose else Level.WARNING)

    def told(line: Line) -> None:
        if line.action != "run_not_started":
            lines(line)

    return told


class Rounds:
    """One run after the other. `needed`: seconds for one send and its settling."""

    def __init__(
        self,
        make: Callable[[], "Worker"],
        check: Callable[[], None],
        stopping: "Stopping",
        *,
        needed: float,
        json: bool,
    ) -> None:
        self._make = make
        self._check = check
        self._worker: Worker | None = None
        self._stopping = stopping
        self._needed = needed
        self._json = json
        self._ours = False  # whose database it is was asked
        self.stuck = (
            False  # a channel could not be sent on, or the database refused: stderr says why
        )

    def go(self, period: float | None, limit: float | None) -> None:
        """A run that left something due is followed by the next at once; else after the period, if there is one."""
        end = inf if limit is None else monotonic() + limit
        try:
            while True:
                began = monotonic()
                most = self._needed + CLAIMING_SECONDS
                more = self._one(min(most, end - began), insist=period is not None)
                next_at = monotonic() if more else inf if period is None else began + period
                if not self._goes_on(next_at, end):
                    return
        finally:
            if self._worker is not None:
                self._worker.close()

    def _goes_on(self, next_at: float, end: float) -> bool:
        """Waits for the next run. False where none follows: there is no time for it, or somebody asked to stop."""
        if isinf(next_at) or next_at + self._needed >= end:
            return False
        if not self._stopping.asked():
            self._stopping.wait(next_at - monotonic())
        return not self._stopping.asked()

    def _one(self, remaining: float, *, insist: bool) -> bool:
        """Whether it left something that was due. With `insist` a database that is away is waited for."""
        from fencepost.core.tally import Count, Ending
        from fencepost.ports import StoreFailed
        from fencepost.settings import SettingsError

        try:
            summary = self._ready().deliver(remaining_seconds=remaining, correlation=_here())
        except StoreFailed as failed:
            trouble = not_begun(failed)
            if insist and trouble.code is ExitCode.DATABASE_AWAY:
                print_trouble(f"{failed.detail}; trying again at the next tick")
                return False
            raise trouble from None
        except SettingsError as wrong:
            raise CommandFailed(str(wrong), ExitCode.USAGE) from None
        if summary.ended is Ending.IDLE:
            self._see_whose_it_is()
        refused = summary.ended is Ending.REFUSED
        self.stuck |= refused or bool(summary.counts[Count.SKIPPED_CHANNELS])
        self._say(summary)
        return not (summary.drained or refused)

    def _see_whose_it_is(self) -> None:
        """Once, where a run found nothing due and therefore asked no further."""
        if not self._ours:
            with suppress(DatabaseAway):  # it answered just now; the next idle run asks again
                self._check()
                self._ours = True

    def _ready(self) -> "Worker":
        """The worker of the run before, unless a send of it would not stop."""
        if self._worker is None or self._worker.spoilt:
            self._worker = self._make()
        return self._worker

    def _say(self, summary: "Summary") -> None:
        if self._json:
            print_json(summary.as_json())
        else:
            counted = [
                f"{number} {count.value.replace('_', ' ')}"
                for count, number in summary.counts.items()
                if number
            ]
            ended = summary.ended.value.replace("_", " ")
            told = ", ".join(counted) or "nothing due that may be sent now"
            print_line(f"run {summary.run[:8]} {ended}: {told}")
        flush()


def checked_limit(limit: float | None, settings: "Settings") -> float:
    """Seconds for one send and its settling. Raises a usage error where `--for` leaves no time for that."""
    needed = settings.timing.send_and_settle_seconds
    if limit is not None and limit <= needed:
        raise typer.BadParameter(
            f"--for must be longer than one send and its settling ({needed:g} s)"
        )
    return needed


def not_begun(failed: "StoreFailed") -> CommandFailed:
    """What a run that could not begin comes to."""
    from fencepost.core.exchange import Failure
    from fencepost.ports import NotMigrated

    if isinstance(failed, NotMigrated):
        return CommandFailed(NOT_MIGRATED, ExitCode.CHECK)
    refused = failed.failure in (Failure.REFUSED, Failure.DATA)
    return CommandFailed(failed.detail, ExitCode.REFUSED if refused else ExitCode.DATABASE_AWAY)


def _here() -> str:
    """Who holds what this run claims, for `explain`."""
    return f"fencepost run on {socket.gethostname()}, pid {os.getpid()}"


def settings_of(
    database_url: str | None, installation: str | None, channels: list[str] | None
) -> "Settings":
    from fencepost.bootstrap import reach
    from fencepost.core.budget import ImpossibleTiming
    from fencepost.settings import SettingsError, read_settings

    said = {
        "DATABASE_URL": database_url,
        "FENCEPOST_INSTALLATION": installation,
        "FENCEPOST_CHANNELS": ",".join(channels) if channels else None,
    }
    try:
        over = {name: value for name, value in said.items() if value is not None}
        settings = read_settings(over=over)
        reach(settings.database)  # what cannot be together is said before the first round
        return settings
    except (SettingsError, ImpossibleTiming) as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None
