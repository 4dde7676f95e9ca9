"""Options that every command has, spelled once."""

from typing import Annotated, Any

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


def why(help: str) -> Any:
    """`--why`: what `explain` shows later must say something, wherever it is said."""
    return typer.Option("--why", help=help, callback=_said)


def _said(text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise typer.BadParameter("it is empty, and `explain` would show nothing")
    return text
