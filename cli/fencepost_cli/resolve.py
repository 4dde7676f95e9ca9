"""`fencepost uncertain resolve`: somebody knows what became of it."""

from typing import Annotated

import typer

from fencepost.core.notification import Kind
from fencepost.core.operation import Resolution
from fencepost_cli import option, selecting
from fencepost_cli.database import operator
from fencepost_cli.move import Move, moved
from fencepost_cli.option import DatabaseUrl, Json, Yes

Delivered = Annotated[bool, typer.Option("--delivered", help="It arrived.")]
NotDelivered = Annotated[
    bool,
    typer.Option("--not-delivered", help="It did not arrive: send it again, nothing is in doubt."),
]
Dead = Annotated[bool, typer.Option("--dead", help="Give it up, whatever became of it.")]
Resend = Annotated[
    bool, typer.Option("--resend", help="Nobody knows: send it again, it may arrive twice.")
]
Why = Annotated[str, option.why("How you know; `explain` shows it.")]
DONE = {
    Resolution.DELIVERED: frozenset({"delivered"}),
    Resolution.NOT_DELIVERED: frozenset({"open"}),
    Resolution.DEAD: frozenset({"dead"}),
    Resolution.RESEND: frozenset({"redriven"}),
}


def resolve(
    why: Why,
    ids: selecting.Ids = None,
    delivered: Delivered = False,
    not_delivered: NotDelivered = False,
    dead: Dead = False,
    resend: Resend = False,
    channel: selecting.Channel = None,
    reason: selecting.Reason = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    limit: selecting.Limit = None,
    everything: selecting.All = False,
    dry_run: selecting.DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Say what became of notifications in doubt. Selectors mean those closed as uncertain."""
    resolution = one_of(delivered, not_delivered, dead, resend)
    selector = selecting.selector(
        kinds=(Kind.UNCERTAIN,),
        channel=channel,
        reason=reason,
        since=since,
        until=until,
        limit=limit,
    )
    meant = selecting.chosen(ids, selector, everything=everything)
    move = Move(verb="resolve", done=DONE[resolution], dry_run=dry_run, yes=yes, json=json)
    with operator(database_url) as database:
        moved(database, meant, move, lambda page: database.resolve(page, resolution, why=why))


def one_of(delivered: bool, not_delivered: bool, dead: bool, resend: bool) -> Resolution:
    """The one that was said. Raises a usage error for none and for several."""
    said = dict(zip(Resolution, (delivered, not_delivered, dead, resend), strict=True))
    chosen = [resolution for resolution, is_said in said.items() if is_said]
    if len(chosen) != 1:
        raise typer.BadParameter("say one of --delivered, --not-delivered, --dead and --resend")
    return chosen[0]
