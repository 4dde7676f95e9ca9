"""`fencepost prune`: let go what is older than it is kept."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line
from fencepost_cli.selecting import seconds

if TYPE_CHECKING:
    from fencepost.core.retention import ClosedPage, Prunable
    from fencepost.store.operator_retention import Retention

DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would go, change nothing.")]
ClosedOlderThan = Annotated[
    str | None,
    typer.Option(
        "--closed-older-than",
        metavar="DURATION",
        help="Also delivered, expired and cancelled notifications closed so long ago, whole.",
    ),
]
HISTORY = ("journal", "runs", "strays", "events", "commands")
CLOSED = ("notifications", "attempts", "evidence", "operations", "kept_for_key")


def prune(
    dry_run: DryRun = False,
    closed_older_than: ClosedOlderThan = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Let go what is older than it is kept: journal, runs, commands, events; closed notifications only when asked."""
    older_than = seconds(closed_older_than, "--closed-older-than")
    with operator(database_url) as database:
        retention = database.retention
        history = _summed(_history(retention, dry=dry_run), HISTORY)
        closed = None
        if older_than is not None:
            closed = _summed(retention.prune_closed(older_than, dry=dry_run), CLOSED)
    if json:
        print_json({"dry_run": dry_run, **history, "closed": closed})
    else:
        _print(history, closed, "would go" if dry_run else "gone")


def _history(retention: "Retention", *, dry: bool) -> "Iterable[Prunable]":
    return [retention.prunable()] if dry else retention.prune()


def _summed(pages: "Iterable[Prunable | ClosedPage]", names: tuple[str, ...]) -> dict[str, int]:
    total = dict.fromkeys(names, 0)
    for page in pages:
        for name in names:
            total[name] += getattr(page, name)
    return total


def _print(history: dict[str, int], closed: dict[str, int] | None, gone: str) -> None:
    journal = history["journal"] + history["strays"]
    print_line(
        f"{gone}: {journal} journal rows, {history['runs']} runs, {history['commands']} commands, "
        f"{history['events']} events of unregistered recipients"
    )
    if closed is None:
        return
    print_line(
        f"{gone}: {closed['notifications']} closed notifications with {closed['attempts']} attempts, "
        f"{closed['evidence']} pieces of evidence, {closed['operations']} operations"
    )
    if closed["kept_for_key"]:
        print_line(f"kept: {closed['kept_for_key']} whose dedupe key is still promised")
