"""`fencepost redrive`: send the parked ones again."""

from typing import Annotated

import typer

from fencepost.core.notification import Kind
from fencepost_cli import option, selecting
from fencepost_cli.database import operator
from fencepost_cli.move import Move, moved
from fencepost_cli.option import DatabaseUrl, Json, Yes

Resend = Annotated[
    bool, typer.Option("--resend", help="Uncertain ones too: some of them may arrive twice.")
]
Why = Annotated[str | None, option.why("Why; `explain` shows it.")]
DONE = frozenset({"redriven"})


def redrive(
    ids: selecting.Ids = None,
    resend: Resend = False,
    channel: selecting.Channel = None,
    reason: selecting.Reason = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    limit: selecting.Limit = None,
    everything: selecting.All = False,
    why: Why = None,
    dry_run: selecting.DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Open parked notifications again, attempts at 0. Selectors mean dead ones; with --resend uncertain ones too."""
    kinds = (Kind.DEAD, Kind.UNCERTAIN) if resend else (Kind.DEAD,)
    selector = selecting.selector(
        kinds=kinds, channel=channel, reason=reason, since=since, until=until, limit=limit
    )
    meant = selecting.chosen(ids, selector, everything=everything)
    move = Move(verb="redrive", done=DONE, dry_run=dry_run, yes=yes, json=json)
    with operator(database_url) as database:
        moved(database, meant, move, lambda page: database.redrive(page, resend=resend, why=why))
