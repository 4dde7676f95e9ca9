"""`fencepost backfill`: bulk work as commands, sent to a queue or done here against a database."""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.notification import Kind
from fencepost.core.operation import Resolution, Selector
from fencepost_cli import backfill_count as counting
from fencepost_cli import backfill_enqueue, backfill_show, selecting
from fencepost_cli import backfill_message as message
from fencepost_cli import redrive as redriving
from fencepost_cli import resolve as resolving
from fencepost_cli.backfill_way import Id, QueueUrl, Way
from fencepost_cli.exit_code import ExitCode
from fencepost_cli.option import DatabaseUrl, Json, Yes
from fencepost_cli.redrive import Resend, Why

if TYPE_CHECKING:
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary

app = typer.Typer(
    help="Bulk work as commands: to a queue with --queue-url, else done here.",
    no_args_is_help=True,
)
app.command("enqueue")(backfill_enqueue.enqueue)
app.command("show", short_help="How a command stands, and what was bad.")(backfill_show.show)
REPLAYED = frozenset({"replayed", "existing"})
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
    _move(way, meant, words, redriving.DONE, dry_run=dry_run, yes=yes, json=json)


@app.command("resolve", short_help="Say what became of uncertain notifications.")
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
    done = resolving.DONE[resolution]
    _move(way, meant, words, done, dry_run=dry_run, yes=yes, json=json)


@app.command("replay", short_help="Send delivered notifications once more, as new ones.")
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
    _move(way, meant, words, REPLAYED, dry_run=dry_run, yes=yes, json=json)


@app.command("drain", short_help="Run the worker once, now.")
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
    words = {"command": "drain", "id": str(way.id)}
    if queue_url is not None:
        return way.go([words], json=json, total=1)
    return _drain_here(way, words, selecting.seconds(for_, "--for") or 0.0, json)


def _drain_here(way: Way, words: message.Words, seconds: float, json: bool) -> None:
    from fencepost.bootstrap import make_worker
    from fencepost.core.tally import Count
    from fencepost.ports import StoreFailed
    from fencepost_cli.run import checked_limit, not_begun, plain_trouble, settings_of

    settings = settings_of(way.database_url, None, None)
    checked_limit(seconds, settings)
    skipped = 0
    with make_worker(settings, lines=plain_trouble()) as worker:

        def run_once(remaining: float, id: "CommandId") -> "Summary":
            nonlocal skipped
            try:
                ran = worker.deliver(
                    remaining_seconds=remaining, correlation=f"drain {id}", part=id
                )
            except StoreFailed as failed:
                raise not_begun(failed) from None
            skipped = ran.counts[Count.SKIPPED_CHANNELS]
            return ran

        with message.command_store(way.database_url) as commands:
            done = message.Done(commands, lambda page: None, run_once)
            done.take(words, monotonic() + seconds)
    way.say(done, json)
    if skipped:
        raise typer.Exit(ExitCode.REFUSED)


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
    done: frozenset[str],
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
    return way.go(words, json=json, total=count, done=done)
