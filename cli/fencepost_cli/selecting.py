"""Which notifications a command means: ids, or a selector."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from fencepost.core.bound import Bound
from fencepost.core.duration import seconds_in
from fencepost.core.notification import Kind
from fencepost.core.operation import Selector
from fencepost_cli.exit_code import CommandFailed, ExitCode

ID_MAX = 2**63 - 1
Id = Annotated[int, typer.Argument(metavar="ID", min=1, max=ID_MAX)]
Ids = Annotated[
    list[int] | None, typer.Argument(metavar="[ID]...", min=1, max=ID_MAX, show_default=False)
]
Channel = Annotated[str | None, typer.Option("--channel", help="Select: of this channel.")]
Reason = Annotated[
    str | None,
    typer.Option("--reason", help="Select: parked for this reason (attempts_exhausted, …)."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Select: at most so old (90s, 5m, 2h, 3d), or since an instant (2026-11-30T10:00Z).",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="WHEN", help="Select: at least so old, or until an instant."),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Select: this many at most.")]
All = Annotated[bool, typer.Option("--all", help="Select: all of them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what is meant, change nothing.")]


def seconds(text: str | None, option: str) -> float | None:
    """Raises a usage error that names the option."""
    if text is None:
        return None
    try:
        return seconds_in(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def _bound(text: str | None, option: str) -> Bound:
    """An instant, or so long ago. Raises a usage error that names the option."""
    from fencepost.backfill.bound import bound_in

    try:
        return bound_in(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def chosen(
    ids: Sequence[int] | None, selector: Selector, *, everything: bool
) -> list[int] | Selector:
    """Ids or a selector, never both and never neither: a forgotten option must not mean all there is."""
    bare = Selector(kinds=selector.kinds, limit=selector.limit, in_doubt=selector.in_doubt)
    selects = everything or selector != bare
    if ids and (selects or selector.limit is not None):
        raise typer.BadParameter("name ids or select, not both")
    if ids:
        return list(dict.fromkeys(ids))
    if not selects:
        raise typer.BadParameter(
            "name ids, or select with --channel, --reason, --since, --until or --all"
        )
    return selector


def selector(
    *,
    kinds: tuple[Kind, ...] = (),
    channel: str | None,
    reason: str | None = None,
    since: str | None,
    until: str | None,
    limit: int | None,
) -> Selector:
    """From the options of a command. Raises a usage error for a range that nothing can be in."""
    from fencepost.backfill.bound import is_empty

    begin, end = _bound(since, "--since"), _bound(until, "--until")
    if is_empty(begin, end):
        raise typer.BadParameter(
            "nothing is in that range: --since says where it begins, --until where it ends"
        )
    return Selector(
        channel=channel,
        kinds=kinds,
        reason=reason,
        since=begin,
        until=end,
        limit=limit,
    )


def confirm(verb: str, count: int) -> None:
    """Ask somebody; where nobody can be asked it is a usage error."""
    if not sys.stdin.isatty():
        raise CommandFailed(
            f"{verb} by selector means {count} notifications: say --yes (or --dry-run)",
            ExitCode.USAGE,
        )
    typer.confirm(f"{verb} {count} notifications?", abort=True, err=True)
