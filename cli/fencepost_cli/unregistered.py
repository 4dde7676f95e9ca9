"""`fencepost unregistered`: recipients said to be gone, what is told of them, and a word on a mass of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from fencepost.core.operation import GoneRecipient

SHOWN = 100
HEADINGS = ("id", "channel", "at", "state", "gone since", "why")
app = typer.Typer(
    help="Recipients that providers say are gone, and whether producers are told.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Channel = Annotated[str | None, typer.Option("--channel", help="Of this channel.")]
Withheld = Annotated[
    bool, typer.Option("--withheld", help="Only what producers are not told without a word.")
]
ShowRecipient = Annotated[
    bool, typer.Option("--show-recipient", help="Whom. Else no recipient is read.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10000, help="The newest so many.")]
Named = Annotated[str, typer.Option("--channel", help="Whose withheld ones.")]
TrueOnes = Annotated[bool, typer.Option("--true", help="They are gone: tell the producers.")]
FalseOnes = Annotated[
    bool, typer.Option("--false", help="The channel was wrong (key, project, environment): forget.")
]


@app.command("list")
def list_(
    channel: Channel = None,
    withheld: Withheld = False,
    show_recipient: ShowRecipient = False,
    limit: Limit = SHOWN,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Recipients said to be gone, newest first: told, withheld (and why), or waiting to be judged."""
    with operator(database_url) as database:
        found = database.doubts.unregistered(
            channel=channel, withheld=withheld, recipient=show_recipient, limit=limit
        )
    if json:
        print_json({"unregistered": found, "limit": limit})
    elif not found:
        print_line("none")
    else:
        headings = (*HEADINGS, "recipient") if show_recipient else HEADINGS
        print_table(headings, [_row(one)[: len(headings)] for one in found], numbers=("id",))


@app.command("resolve")
def resolve(
    channel: Named,
    true: TrueOnes = False,
    false: FalseOnes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Say of what is withheld in a channel whether it is true. Attempts and notifications stay as they are."""
    if true is false:
        raise typer.BadParameter("say one of --true and --false")
    with operator(database_url) as database:
        count = database.doubts.resolve_unregistered(channel, true=true)
    if json:
        print_json({"channel": channel, "true": true, "count": count})
    else:
        print_line(f"{channel}: {count} {'told to producers' if true else 'forgotten'}")


def _row(one: "GoneRecipient") -> tuple[str, ...]:
    word = f" (said by {one.told_on_word_of})" if one.told_on_word_of else ""
    return (
        str(one.id),
        one.channel,
        one.at,
        f"{one.state}{word}",
        one.gone_at or "",
        f"{one.why or ''}{' (guarded)' if one.guarded else ''}".strip(),
        one.recipient or "",
    )
