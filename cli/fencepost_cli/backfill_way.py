"""Where the messages of one command go, and how its answer reads."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost.core.operation import DatabaseAway, OperatorError
from fencepost_cli import backfill_message as message
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.output import print_json, print_line, print_trouble
from fencepost_cli.progress import progress

if TYPE_CHECKING:
    from fencepost.core.backfill import Paged
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary

Seen = Callable[["Paged"], None]
QueueUrl = Annotated[
    str | None,
    typer.Option("--queue-url", metavar="URL", help="Send it to this SQS queue (AWS credentials)."),
]
Id = Annotated[
    uuid.UUID | None,
    typer.Option(
        "--id",
        metavar="UUID",
        help="The command's id: the same id again is done once. Left out: a new one, which is told.",
    ),
]


class Way:
    """Where the messages of one command go, and how its answer reads."""

    def __init__(
        self, name: str, queue_url: str | None, database_url: str | None, id: uuid.UUID | None
    ) -> None:
        if queue_url is not None:
            _refuse_queue(queue_url)
        self.name, self.queue_url, self.database_url = name, queue_url, database_url
        self.id = id or uuid.uuid4()

    def go(
        self,
        messages: Iterable[message.Words],
        *,
        json: bool,
        total: int | None = None,
        done: frozenset[str] | None = None,
    ) -> None:
        """All messages, and the answer. `done`: the counts of what was done as it was meant, where others are of
        what was not. Raises `typer.Exit(1)` where there is any, or a bad row."""
        with progress(self.name, total, quiet=json, counted=True) as advance:
            went = self.gone(messages, _seen(advance))
        self.say(went, json, done=done)
        if went.counts["refused"] or (done is not None and _left(went.counts, done)):
            raise typer.Exit(ExitCode.REFUSED)

    def gone(self, messages: Iterable[message.Words], seen: Seen) -> message.Went:
        """All messages, without a word but how to go on where it breaks off."""
        try:
            return (
                self._sent(messages) if self.queue_url is not None else self._done(messages, seen)
            )
        except (CommandFailed, OperatorError, KeyboardInterrupt) as broken:
            if _may_go_on(broken):
                print_trouble(
                    f"{self.name} {self.id} may be done in part: the same again with --id {self.id} goes on"
                )
            raise

    def _sent(self, messages: Iterable[message.Words]) -> message.Sent:
        sent = message.Sent(self.queue_url or "")
        for words in messages:
            sent.take(words)
        return sent

    def _done(self, messages: Iterable[message.Words], seen: Seen) -> message.Done:
        with message.command_store(self.database_url) as commands:
            done = message.Done(commands, seen, _no_run)
            for words in messages:
                done.take(words)
            return done

    def say(
        self,
        went: message.Went,
        json: bool,
        more: Mapping[str, object] = MappingProxyType({}),
        *,
        done: frozenset[str] | None = None,
    ) -> None:
        """What was sent or done. `more` goes into the JSON answer."""
        sent = self.queue_url is not None
        if json:
            answer = {"command": self.name, "id": str(self.id), "messages": went.messages}
            print_json({**answer, "sent": sent, "counts": went.counts, **more})
            return
        what = _in_words(went.counts, done)
        if sent:
            what = ", ".join(
                filter(
                    None, (f"{went.messages} message{'' if went.messages == 1 else 's'} sent", what)
                )
            )
        print_line(f"{self.name} {self.id}: {what or 'nothing to do'}")


def _refuse_queue(url: str) -> None:
    """Before anything is sent: SQS would answer in words of its own."""
    if not url.startswith(("https://", "http://")):
        raise CommandFailed("--queue-url is no URL of an SQS queue", ExitCode.USAGE)
    if url.endswith(".fifo"):
        raise CommandFailed(
            "--queue-url is a FIFO queue: commands need a standard one", ExitCode.USAGE
        )


def _in_words(counts: Mapping[str, int], done: frozenset[str] | None) -> str:
    """A refusal must not read like success: `1 delivered` is no answer to a redrive."""
    left = {} if done is None else _left(counts, done)
    told = {name: count for name, count in counts.items() if name not in left}
    apart = f"not moved: {message.in_words(left)}" if left else ""
    return ", ".join(filter(None, (message.in_words(told), apart)))


def _left(counts: Mapping[str, int], done: frozenset[str]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count and name not in done}


def _may_go_on(broken: BaseException) -> bool:
    """Not what was refused: the same words would be refused again."""
    if isinstance(broken, CommandFailed):
        return broken.code is ExitCode.DATABASE_AWAY
    return isinstance(broken, (DatabaseAway, KeyboardInterrupt))


def _seen(advance: Callable[[int], None]) -> Seen:
    """Moves a bar on, and names what was bad."""

    def seen(page: "Paged") -> None:
        for number, fault in page.faults:
            print_trouble(f"line {number}: {fault}")
        advance(sum(page.counts.values()))

    return seen


def _no_run(seconds: float, id: "CommandId") -> "Summary":
    raise CommandFailed("no run here")
