"""`fencepost explain`: why did this one not arrive?"""

from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli import selecting
from fencepost_cli.database import operator
from fencepost_cli.exit_code import CommandFailed
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line

if TYPE_CHECKING:
    from fencepost.core.explain import Explanation
    from fencepost.core.inspection import Inspection

ShowRecipient = Annotated[
    bool, typer.Option("--show-recipient", help="The recipient and the dedupe key too.")
]
ShowPayload = Annotated[bool, typer.Option("--show-payload", help="The payload too.")]


def explain(
    id: selecting.Id,
    show_recipient: ShowRecipient = False,
    show_payload: ShowPayload = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Why did it not arrive? Every attempt, who held it, what came back, what is in doubt, what happens next."""
    from fencepost.core.explain import explain as told

    with operator(database_url) as database:
        seen = database.inspect(id, recipient=show_recipient, payload=show_payload)
    if seen is None:
        raise CommandFailed(f"there is no notification {id}")
    explanation = told(seen)
    if json:
        print_json({"facts": seen, "explanation": explanation})
    else:
        _print(seen, explanation)


def _print(seen: "Inspection", told: "Explanation") -> None:
    print_line(f"notification {seen.id} on channel {seen.channel.name} ({seen.channel.sender})")
    print_line(f"  {told.standing}")
    print_line(f"  idempotency key {seen.idempotency_key}")
    if seen.recipient is not None:
        print_line(f"  recipient {seen.recipient}")
    if seen.dedupe_key is not None:
        print_line(f"  dedupe key {seen.dedupe_key}")
    if seen.payload is not None:
        import msgspec

        print_line(f"  payload {msgspec.json.encode(seen.payload).decode()}")
    print_line()
    for moment in told.timeline:
        print_line(f"  {moment.at}  {moment.text}")
    print_line()
    for doubt in told.doubts:
        print_line(f"  in doubt: {doubt}")
    print_line(f"  next: {told.next}")
