"""`fencepost channel`: the ways out, their limits and their pauses."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.duration import seconds_in, spoken
from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from fencepost.core.operation import ChannelRow

app = typer.Typer(
    help="The ways out: create, change, pause.", no_args_is_help=True, rich_markup_mode=None
)
File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="Tables [channel.NAME].")]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Reason = Annotated[str, typer.Option("--reason", help="Why; `status` and `explain` show it.")]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="DURATION", help="90s, 5m, 2h, 3d. Without: until resumed."),
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Say what would change, write nothing.")]


@app.command("apply")
def apply(
    file: File, dry_run: Dry = False, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """Create or change the channels of a file, all or none. A paused channel stays paused."""
    from fencepost_cli.channel_file import read_channels, refuse_kept_policies

    channels = read_channels(file)
    with operator(database_url) as database:
        refuse_kept_policies(file, channels, database.channels())
        changes = database.apply_channels(channels, dry=dry_run)
    if json:
        print_json({"channels": changes, "dry_run": dry_run})
        return
    for change in changes:
        pause = f"; still paused: {change.pause_reason}" if change.paused else ""
        would = "would be " if dry_run and change.change != "unchanged" else ""
        print_line(f"{change.name}: {would}{change.change} (revision {change.revision}){pause}")


@app.command("list")
def list_(database_url: DatabaseUrl = None, json: Json = False) -> None:
    """All channels. The secret's reference says where it is, never what it is."""
    with operator(database_url) as database:
        channels = database.channels()
    if json:
        print_json({"channels": channels})
        return
    headings = ("channel", "sender", "on uncertain", "slots", "rate", "secret", "revision", "state")
    print_table(
        headings, [_row(channel) for channel in channels], numbers=("slots", "rate", "revision")
    )


@app.command("pause")
def pause(
    name: Name,
    reason: Reason,
    for_: For = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Claim nothing more of a channel. What is being sent is still settled."""
    seconds = None if for_ is None else _seconds(for_)
    with operator(database_url) as database:
        revision = database.pause(name, reason=reason, seconds=seconds)
    if json:
        print_json(
            {
                "channel": name,
                "paused": True,
                "seconds": seconds,
                "reason": reason,
                "revision": revision,
            }
        )
    else:
        print_line(
            f"{name}: paused {'until it is resumed' if seconds is None else 'for ' + spoken(seconds)}"
        )


@app.command("resume")
def resume(name: Name, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """Open a paused channel again."""
    with operator(database_url) as database:
        answer = database.resume(name)
    if json:
        print_json(
            {
                "channel": name,
                "paused": False,
                **_was(answer.was_paused_for),
                "revision": answer.revision,
            }
        )
    else:
        was = answer.was_paused_for
        print_line(
            f"{name}: {'was not paused' if was is None else f'open again (was paused: {was})'}"
        )


def _was(reason: str | None) -> dict[str, object]:
    return {"was_paused": reason is not None, "was_paused_for": reason}


def _seconds(text: str) -> float:
    try:
        return seconds_in(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _row(channel: "ChannelRow") -> tuple[str, ...]:
    rate = "" if channel.rate is None else f"{channel.rate:g}/s"
    return (
        channel.name,
        channel.sender,
        channel.on_uncertain,
        str(channel.slots),
        rate,
        channel.secret_reference or "",
        str(channel.revision),
        pause_in_words(channel.paused, channel.paused_for_seconds, channel.pause_reason),
    )


def pause_in_words(paused: bool, seconds: float | None, reason: str | None) -> str:
    """`open`, or how long it is paused and why."""
    if not paused:
        return "open"
    for_ = "until resumed" if seconds is None else f"for {spoken(seconds)}"
    return f"paused {for_}: {reason}" if reason else f"paused {for_}"
