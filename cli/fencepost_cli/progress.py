"""A progress bar on stderr where somebody watches; nothing otherwise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    name: str, total: int | None, *, quiet: bool, counted: bool = False
) -> Iterator[Callable[[int], None]]:
    """Call what it gives with the bytes just done, or with how many where things are `counted`."""
    if quiet or not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn() if counted else DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(name, total=total)
        yield lambda size: bar.advance(shown, size)
