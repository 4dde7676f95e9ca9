"""`fencepost quarantine`: after a restore, nobody knows what was sent in the time that was lost."""

import sys
from typing import Annotated

import typer

from fencepost_cli import option
from fencepost_cli.database import operator
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json, Yes
from fencepost_cli.output import print_json, print_line

Why = Annotated[str, option.why("Why; `explain` shows it.")]


def quarantine(
    why: Why, yes: Yes = False, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """After a restore: put everything open in doubt, so that the policy for doubt decides what is sent again."""
    with operator(database_url) as database:
        if not yes:
            _confirm(database.bound_to())
        count = database.quarantine(why=why)
    if json:
        print_json({"in_doubt": count})
    else:
        print_line(f"{count} open notifications are in doubt now")


def _confirm(installation: str | None) -> None:
    if not sys.stdin.isatty():
        raise CommandFailed("quarantine means everything open: say --yes", ExitCode.USAGE)
    typer.confirm(f"put everything open of {installation} in doubt?", abort=True, err=True)
