"""`fencepost backfill`: bulk work as commands, sent to a queue or done here against a database."""

import uuid
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.notification import Kind
from fencepost.core.operation import Resolution, Selector
from fencepost_cli import backfill_count as counting
from fencepost_cli import backfill_enqueue, selecting
from fencepost_cli import backfill_message as message
from fencepost_cli import resolve as resolving
from fencepost_cli.backfill_way import Id, QueueUrl, Way
from fencepost_cli.exit_code import CommandFailed
from fencepost_cli.option import DatabaseUrl, Json, Yes
from fencepost_cli.output import print_json, print_line, print_trouble
from fencepost_cli.redrive import Resend, Why

if TYPE_CHECKING:
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary

app = typer.Typer(
    help="Bulk work as commands: to a queue with --queue-url, else done here.",
    no_args_is_help=True,
)
app.command("enqueue")(backfill_enqueue.enqueue)
DrainFor = Annotated[str, typer.Option("--for", metavar="DURATION", help="Here: end after this.")]


@app.command("redrive")
def redrive(
    ids: selecting.Ids = None,
    resend: Resend = False,
    channel: selecting.Channel = None,
    reason: selecting.Reason = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    everything: selecting.All = False,
    why: Why = None,
    id: Id = None,
    queue_url: QueueUrl = None,
    dry_run: selecting.DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Open parked notifications again, attempts at 0. Selectors mean dead ones; with --resend uncertain ones too."""
    kinds = (Kind.DEAD, Kind.UNCERTAIN) if resend else (Kind.DEAD,)
    meant = _meant(ids, kinds, channel, reason, since, until, everything)
    way = Way("redrive", queue_url, database_url, id)
    words = message.moving("redrive", way.id, meant, resend=resend, why=why)
    _move(way, meant, words, dry_run=dry_run, yes=yes, json=json)


@app.command("resolve")
def resolve(
    why: resolving.Why,
    ids: selecting.Ids = None,
    delivered: resolving.Delivered = False,
    not_delivered: resolving.NotDelivered = False,
    dead: resolving.Dead = False,
    resend: resolving.Resend = False,
    channel: selecting.Channel = None,
    reason: selecting.Reason = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    everything: selecting.All = False,
    id: Id = None,
    queue_url: QueueUrl = None,
    dry_run: selecting.DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Say what became of notifications in doubt. Selectors mean those closed as uncertain."""
    resolution: Resolution = resolving.one_of(delivered, not_delivered, dead, resend)
    meant = _meant(ids, (Kind.UNCERTAIN,), channel, reason, since, until, everything)
    way = Way("resolve", queue_url, database_url, id)
    words = message.moving("resolve", way.id, meant, resolution=resolution.value, why=why)
    _move(way, meant, words, dry_run=dry_run, yes=yes, json=json)


@app.command("replay")
def replay(
    ids: selecting.Ids = None,
    channel: selecting.Channel = None,
    since: selecting.Since = None,
    until: selecting.Until = None,
    everything: selecting.All = False,
    id: Id = None,
    queue_url: QueueUrl = None,
    dry_run: selecting.DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Send delivered notifications once more, as new ones linked to the old. The range is of when they arrived."""
    meant = _meant(ids, (Kind.DELIVERED,), channel, None, since, until, everything)
    way = Way("replay", queue_url, database_url, id)
    words = message.moving("replay", way.id, meant)
    _move(way, meant, words, dry_run=dry_run, yes=yes, json=json)


@app.command("drain")
def drain(
    id: Id = None,
    for_: DrainFor = "60s",
    queue_url: QueueUrl = None,
    dry_run: selecting.DryRun = False,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Run the worker now, with the same leases as the schedule's runs (here: FENCEPOST_INSTALLATION is needed)."""
    way = Way("drain", queue_url, database_url, id)
    if dry_run:
        return counting.would("drain", counting.due(database_url), json)
    words = iter([{"command": "drain", "id": str(way.id)}])
    if queue_url is not None:
        return way.go(words, json=json, total=1)
    return _drain_here(way, words, selecting.seconds(for_, "--for") or 0.0, json)


@app.command("show")
def show(
    id: Annotated[uuid.UUID, typer.Argument(metavar="ID")],
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """How a command stands: what it did so far, and what was bad."""
    with message.command_store(database_url) as commands:
        found = commands.status(id)
    if found is None:
        raise CommandFailed(f"there is no command {id}: none of its messages has been taken yet")
    if json:
        print_json(found)
        return
    print_line(f"{found['command']} {id}: {found['state']}, {message.in_words(found['counts'])}")
    for one in found["faults"]:
        print_line(f"  {one['line']}: {one['fault']}")


def _drain_here(way: Way, words: Iterator[message.Words], seconds: float, json: bool) -> None:
    from fencepost.bootstrap import make_worker
    from fencepost.core.line import Level
    from fencepost.telemetry import plain_lines
    from fencepost_cli.run import settings_of

    settings = settings_of(way.database_url, None, None)
    with make_worker(settings, lines=plain_lines(print_trouble, Level.WARNING)) as worker:

        def run_once(remaining: float, id: "CommandId") -> "Summary":
            return worker.deliver(remaining_seconds=remaining, correlation=f"drain {id}", part=id)

        with message.command_store(way.database_url) as commands:
            done = message.Done(commands, lambda page: None, run_once)
            for one in words:
                done.take(one, monotonic() + seconds)
    way.say(done, json)


def _meant(
    ids: Sequence[int] | None,
    kinds: tuple[Kind, ...],
    channel: str | None,
    reason: str | None,
    since: str | None,
    until: str | None,
    everything: bool,
) -> list[int] | Selector:
    selector = selecting.selector(
        kinds=kinds, channel=channel, reason=reason, since=since, until=until, limit=None
    )
    return selecting.chosen(ids, selector, everything=everything)


def _move(
    way: Way,
    meant: list[int] | Selector,
    words: Iterator[message.Words],
    *,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Counts for a dry run, a question or a bar; asks; goes."""
    by_selector = isinstance(meant, Selector)
    here = way.queue_url is None
    count = None
    if not by_selector:
        count = len(meant)  # type: ignore[arg-type]
    elif dry_run or not yes or (here and not json):
        count = counting.meant(way, meant)  # type: ignore[arg-type]
    if dry_run:
        return counting.would(way.name, count or 0, json)
    if by_selector and not yes:
        selecting.confirm(way.name, count or 0)
    return way.go(words, json=json, total=count)
