"""`fencepost run`: the worker outside Lambda."""

import sys
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_trouble
from fencepost_cli.selecting import seconds

if TYPE_CHECKING:
    from fencepost.core.tally import Summary
    from fencepost.settings import Settings
    from fencepost.worker import Worker
    from fencepost_cli.stopping import Stopping

RUN_SECONDS_MAX = 300.0  # one run; it ends earlier when nothing is due any more
Once = Annotated[
    bool, typer.Option("--once", help="One run over what is due, then end (the default).")
]
Every = Annotated[
    str | None, typer.Option("--every", metavar="DURATION", help="A run every 60s, until stopped.")
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
    settings = _settings(database_url, installation, channel)

    from fencepost.bootstrap import make_worker
    from fencepost.core.line import Level
    from fencepost.telemetry import plain_lines
    from fencepost_cli.stopping import Stopping

    lines = plain_lines(lambda text: print_trouble(text), Level.DEBUG if verbose else Level.WARNING)
    with Stopping() as stopping:
        make = partial(make_worker, settings, lines=lines, clock=stopping.clock)
        Rounds(make, stopping, settings, json=json).go(period, limit)


class Rounds:
    """One run after the other."""

    def __init__(
        self,
        make: Callable[[], "Worker"],
        stopping: "Stopping",
        settings: "Settings",
        *,
        json: bool,
    ) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._stopping = stopping
        self._timing = settings.timing
        self._json = json

    def go(self, period: float | None, limit: float | None) -> None:
        """No period: one run. A run that ended with more to do is followed by the next at once."""
        end = inf if limit is None else self._stopping.clock() + limit
        try:
            while True:
                began = self._stopping.clock()
                more = self._one(
                    max(0.0, min(RUN_SECONDS_MAX, end - began)), insist=period is not None
                )
                if period is None or not self._goes_on(began if more else began + period, end):
                    return
        finally:
            if self._worker is not None:
                self._worker.close()

    def _goes_on(self, next_at: float, end: float) -> bool:
        """Waits for the next run. False where none follows: it is time to end, or somebody asked for it."""
        if next_at >= end:
            return False
        self._stopping.wait(next_at - self._stopping.clock())
        return not self._stopping.asked and self._stopping.clock() < end

    def _one(self, remaining: float, *, insist: bool) -> bool:
        """Whether it left something that was due. With `insist` a database that is away is waited for."""
        from fencepost.core.exchange import Failure
        from fencepost.ports import StoreFailed

        self._stopping.run_begins(
            stop_claiming_in_seconds=remaining - self._timing.send_and_settle_seconds
        )
        try:
            summary = self._ready().deliver(
                remaining_seconds=remaining, correlation="fencepost run"
            )
        except StoreFailed as failed:
            refused = failed.failure in (Failure.REFUSED, Failure.DATA)
            if insist and not refused:
                return False
            code = ExitCode.REFUSED if refused else ExitCode.DATABASE_AWAY
            raise CommandFailed(failed.detail, code) from None
        self._say(summary)
        return not summary.drained

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
            print_line(
                f"run {summary.run[:8]} {summary.ended.value.replace('_', ' ')}: {', '.join(counted) or 'nothing due'}"
            )
        sys.stdout.flush()


def _settings(
    database_url: str | None, installation: str | None, channels: list[str] | None
) -> "Settings":
    from fencepost.core.budget import ImpossibleTiming
    from fencepost.settings import SettingsError, read_settings

    said = {
        "DATABASE_URL": database_url,
        "FENCEPOST_INSTALLATION": installation,
        "FENCEPOST_CHANNELS": ",".join(channels) if channels else None,
    }
    try:
        return read_settings(
            over={name: value for name, value in said.items() if value is not None}
        )
    except (SettingsError, ImpossibleTiming) as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None
