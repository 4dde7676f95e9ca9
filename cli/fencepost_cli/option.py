"""Options that every command has, spelled once."""

from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        envvar="DATABASE_URL",
        metavar="URL",
        show_default=False,
        help="Where the notifications are: postgresql://user@host/name.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer as one JSON document on stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
