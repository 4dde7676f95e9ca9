"""`fencepost retention`: how long things are kept."""

from typing import Annotated

import typer

from fencepost.core.duration import spoken
from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line
from fencepost_cli.selecting import seconds

Journal = Annotated[
    str | None,
    typer.Option("--journal", metavar="DURATION", help="Journal and runs, from their end on."),
]
DedupeKeys = Annotated[
    str | None,
    typer.Option("--dedupe-keys", metavar="DURATION", help="Dedupe keys, from enqueue on."),
]


def retention(
    journal: Journal = None,
    dedupe_keys: DedupeKeys = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Say, or change, how long things are kept. Runs let go what is older by themselves."""
    longer = seconds(journal, "--journal")
    keys = seconds(dedupe_keys, "--dedupe-keys")
    with operator(database_url) as database:
        kept = database.retention.kept(journal=longer, dedupe_keys=keys)
    if json:
        print_json({"journal_seconds": kept.journal, "dedupe_keys_seconds": kept.dedupe_keys})
    else:
        print_line(
            f"journal and runs: {spoken(kept.journal)}, dedupe keys: {spoken(kept.dedupe_keys)}"
        )
