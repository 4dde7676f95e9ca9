"""`fencepost status`: what is due, leased, in doubt and parked, by channel."""

from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.duration import spoken
from fencepost_cli.channel import pause_in_words
from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from fencepost.core.operation import ChannelStatus

Exact = Annotated[
    bool,
    typer.Option("--exact", help="Count everything, however much there is (slow on millions)."),
]
HEADINGS = (
    "channel",
    "due",
    "scheduled",
    "leased",
    "in doubt",
    "dead",
    "uncertain",
    "oldest due",
    "state",
)
NUMBERS = HEADINGS[1:7]


def status(exact: Exact = False, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """What is due, scheduled, leased, in doubt and parked, by channel. `+` means: that many or more."""
    with operator(database_url) as database:
        installation = database.bound_to()
        rows = database.status(at_most=None) if exact else database.status()
    if json:
        print_json({"installation": installation, "channels": rows})
        return
    print_line(f"installation: {installation or 'not bound yet (fencepost bind NAME)'}")
    if not rows:
        print_line("no channels yet (fencepost channel apply FILE.toml)")
        return
    print_table(HEADINGS, [_row(row) for row in rows], numbers=NUMBERS)


def _row(row: "ChannelStatus") -> tuple[str, ...]:
    open_, parked = ("+" if row.open_more else ""), ("+" if row.parked_more else "")
    oldest = "" if row.oldest_due_seconds is None else spoken(max(row.oldest_due_seconds, 0))
    return (
        row.channel,
        *(f"{count}{open_}" for count in (row.due, row.scheduled, row.leased, row.in_doubt)),
        *(f"{count}{parked}" for count in (row.dead, row.uncertain)),
        oldest,
        _state(row),
    )


def _state(row: "ChannelStatus") -> str:
    """Open, paused, or not to be sent on; and what waits for an operator's word on recipients that may be gone."""
    said = []
    if row.skip_reason is not None:
        since = spoken(max(row.skipped_for_seconds or 0, 0))
        said.append(f"no worker can send ({since}): {row.skip_reason}")
    if row.paused or not said:
        pause = pause_in_words(row.paused, row.paused_for_seconds, row.pause_reason)
        resume = f" (fencepost channel resume {row.channel})" if row.paused else ""
        said.insert(0, pause + resume)
    if row.withheld:
        said.append(f"{row.withheld} said to be gone are withheld (fencepost unregistered list)")
    return "; ".join(said)
