"""`fencepost uncertain`: what is in doubt, and what somebody knows of it."""

from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.duration import spoken
from fencepost_cli import selecting
from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_table
from fencepost_cli.resolve import resolve

if TYPE_CHECKING:
    from fencepost.core.operation import Doubtful

SHOWN = 100
HEADINGS = ("id", "channel", "for", "state", "why", "policy", "attempts", "last attempt")
app = typer.Typer(
    help="Did it arrive? What is in doubt, and what is known of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Limit = Annotated[
    int, typer.Option("--limit", min=1, max=10000, help="Show this many at most, oldest first.")
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", help="Select: closed for this reason (held, window_passed, …)."),
]
app.command("resolve", short_help="Say what became of them.")(resolve)


@app.command("list")
def list_(
    channel: selecting.Channel = None,
    reason: Reason = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    limit: Limit = SHOWN,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """What is in doubt: open ones that wait for evidence or for their policy, and those held for a word."""
    selector = selecting.selector(
        channel=channel, reason=reason, since=since, until=until, limit=None
    )
    with operator(database_url) as database:
        found = database.doubts.uncertain(selector, limit=limit)
    if json:
        print_json({"notifications": found, "limit": limit})
        return
    if not found:
        print_line("nothing is in doubt")
        return
    print_table(HEADINGS, [_row(one) for one in found], numbers=("id", "for", "attempts"))
    if len(found) == limit:
        print_line(f"these are the {limit} oldest; --limit shows more")


def _row(one: "Doubtful") -> tuple[str, ...]:
    return (
        str(one.id),
        one.channel,
        "" if one.age_seconds is None else spoken(max(one.age_seconds, 0)),
        one.state,
        one.reason or "in doubt",
        one.policy,
        str(one.attempts),
        _attempt(one),
    )


def _attempt(one: "Doubtful") -> str:
    facts = (
        None if one.fence is None else f"fence {one.fence}",
        None if one.status is None else f"status {one.status}",
        one.reference and f"reference {one.reference}",
        one.detail,
    )
    return ", ".join(fact for fact in facts if fact)
