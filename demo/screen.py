"""What the demo shows: a live panel on a terminal, plain lines anywhere else. The table at the end is the same."""

import sys
import time
from collections.abc import Sequence
from typing import Protocol

from rich import box
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from demo.database import Progress
from demo.verdict import Line

PLAIN_EVERY_SECONDS = 2.0
MARKS = {True: "[green]✓[/green]", False: "[bold red]✗[/bold red]", None: ""}


class Screen(Protocol):
    def say(self, text: str) -> None:
        """One line that stays."""
        ...

    def progress(self, progress: Progress, total: int, runtimes: Sequence[str]) -> None: ...

    def close(self) -> None: ...


class PlainScreen:
    """Lines, now and then."""

    def __init__(self) -> None:
        self._began, self._shown = time.monotonic(), 0.0

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)

    def progress(self, progress: Progress, total: int, runtimes: Sequence[str]) -> None:
        if time.monotonic() - self._shown >= PLAIN_EVERY_SECONDS:
            self._shown = time.monotonic()
            self.say(f"{counted(progress, total)} · {' '.join(runtimes)}")

    def close(self) -> None: ...


class LiveScreen:
    """A bar, the counts and the runtimes, redrawn in place."""

    def __init__(self) -> None:
        self._console = Console()
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._began = time.monotonic()
        self._live.start()

    def say(self, text: str) -> None:
        self._live.console.print(f"[dim]{time.monotonic() - self._began:6.1f} s[/dim]  {text}")

    def progress(self, progress: Progress, total: int, runtimes: Sequence[str]) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_row(ProgressBar(total=total, completed=total - progress.open, width=60))
        grid.add_row(counted(progress, total))
        grid.add_row("runtimes: " + "  ".join(runtimes))
        self._live.update(grid)

    def close(self) -> None:
        self._live.stop()


def screen() -> Screen:
    return LiveScreen() if sys.stdout.isatty() else PlainScreen()


def counted(progress: Progress, total: int) -> str:
    return (
        f"{total - progress.open:,} of {total:,} closed · {progress.delivered:,} delivered · "
        f"{progress.parked} parked · {progress.leased} leased · {progress.in_doubt} in doubt · "
        f"{progress.taken_over} taken over · {progress.late_words} late"
    )


def show_table(title: str, lines: Sequence[Line]) -> None:
    """Numbers; who says so stands beside each."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("says", style="dim")
    table.add_column("")
    for line in lines:
        table.add_row(line.label, line.value, line.source, MARKS[line.kept])
    _print(table)


def show_sentences(title: str, lines: Sequence[Line]) -> None:
    """A sentence for each label."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), show_header=False)
    for line in lines:
        table.add_row(line.label, line.value, MARKS[line.kept])
    _print(table)


def _print(table: Table) -> None:
    Console(width=None if sys.stdout.isatty() else 90).print(table)
