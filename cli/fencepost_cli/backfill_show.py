"""`fencepost backfill show`: how a command stands."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from fencepost_cli import backfill_message as message
from fencepost_cli.exit_code import CommandFailed
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line

PARTS_AHEAD = 100  # messages of one command that may be done before one that was sent earlier
STATES = (
    "under way",
    "refused",
    "done",
)  # the first that one of its messages is in is the command's
TOGETHER = {"under way": "one under way", "refused": "one refused", "done": "each done"}
Standing = dict[str, Any]


def show(
    id: Annotated[uuid.UUID, typer.Argument(metavar="ID")],
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """How a command stands: what it did so far, and what was bad."""
    with message.command_store(database_url) as commands:
        found = whole_of(id, commands.status)
    if found is None:
        raise CommandFailed(f"there is no command {id}: none of its messages has been taken yet")
    if json:
        print_json(found)
        return
    parts = (_state(found), message.in_words(found["counts"]))
    print_line(f"{found['command']} {id}: {', '.join(filter(None, parts))}")
    for fault in found["faults"]:
        print_line(f"  {_where(fault)}: {fault['fault']}")


def _state(found: Standing) -> str:
    """Of several messages nobody here knows how many are still in the queue."""
    if "messages" not in found:
        return str(found["state"])
    return f"{found['messages']} messages taken so far, {TOGETHER[found['state']]}"


def _where(fault: dict[str, Any]) -> str:
    if "message" in fault:
        return f"message {fault['message']}, row {fault['line']}"
    return str(fault["line"])


def whole_of(id: uuid.UUID, ask: Callable[[uuid.UUID], Standing | None]) -> Standing | None:
    """How a command stands, of one message or of several. The queue may hand those over in any order."""
    if (alone := ask(id)) is not None:
        return alone
    found: dict[int, Standing] = {}
    number = 0
    while number <= max(found, default=0) + PARTS_AHEAD:
        if (standing := ask(uuid.UUID(message.part(id, number)))) is not None:
            found[number] = standing
        number += 1
    return _together(id, found) if found else None


def _together(id: uuid.UUID, found: Mapping[int, Standing]) -> Standing:
    """Messages are counted from 1. A fault's line is the row of its message."""
    counts: Counter[str] = Counter()
    for one in found.values():
        counts.update(one["counts"])
    faults = [
        {"message": number + 1, **fault} for number, one in found.items() for fault in one["faults"]
    ]
    return {
        "id": str(id),
        "command": next(iter(found.values()))["command"],
        "state": min((one["state"] for one in found.values()), key=STATES.index),
        "messages": len(found),
        "counts": counts,
        "faults": faults,
    }
