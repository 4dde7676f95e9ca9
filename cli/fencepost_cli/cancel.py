"""`fencepost cancel`: it must not be sent any more."""

from typing import Annotated

from fencepost_cli import option, selecting
from fencepost_cli.database import operator
from fencepost_cli.move import Move, moved
from fencepost_cli.option import DatabaseUrl, Json, Yes

Why = Annotated[str | None, option.why("Why; `explain` shows it.")]
DONE = frozenset({"cancelled", "cancelled_leased"})


def cancel(
    ids: selecting.Ids = None,
    channel: selecting.Channel = None,
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
    """Cancel open notifications. One that is being sent right now may still arrive: then it becomes delivered."""
    selector = selecting.selector(channel=channel, since=since, until=until, limit=limit)
    meant = selecting.chosen(ids, selector, everything=everything)
    move = Move(verb="cancel", done=DONE, dry_run=dry_run, yes=yes, json=json)
    with operator(database_url) as database:
        moved(database, meant, move, lambda page: database.cancel(page, why=why))
