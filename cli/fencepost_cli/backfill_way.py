"""Where the messages of one command go, and how its answer reads."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli import backfill_message as message
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.output import print_json, print_line
from fencepost_cli.progress import progress

if TYPE_CHECKING:
    from fencepost.core.backfill import Paged
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary

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
        self.name, self.queue_url, self.database_url = name, queue_url, database_url
        self.id = id or uuid.uuid4()

    def go(
        self,
        messages: Iterable[message.Words],
        *,
        json: bool,
        total: int | None = None,
        bar: bool = True,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """All messages, and the answer. Raises `typer.Exit(1)` where rows were refused."""
        with progress(self.name, total, quiet=json or not bar, counted=True) as advance:
            went = self._gone(messages, advance)
        self.say(went, json, more)
        if went.counts["refused"]:
            raise typer.Exit(ExitCode.REFUSED)

    def _gone(
        self, messages: Iterable[message.Words], advance: Callable[[int], None]
    ) -> message.Went:
        if self.queue_url is not None:
            sent = message.Sent(self.queue_url)
            for words in messages:
                sent.take(words)
            return sent
        with message.command_store(self.database_url) as commands:
            done = message.Done(commands, _seen(advance), _no_run)
            for words in messages:
                done.take(words)
            return done

    def say(
        self,
        went: message.Went,
        json: bool,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """What was sent or done. `more` goes into the JSON answer."""
        sent = self.queue_url is not None
        if json:
            answer = {"command": self.name, "id": str(self.id), "messages": went.messages}
            print_json({**answer, "sent": sent, "counts": went.counts, **more})
            return
        what = f"{went.messages} messages sent" if sent else message.in_words(went.counts)
        print_line(f"{self.name} {self.id}: {what or 'nothing to do'}")


def _seen(advance: Callable[[int], None]) -> "Callable[[Paged], None]":
    return lambda page: advance(sum(page.counts.values()))


def _no_run(seconds: float, id: "CommandId") -> "Summary":
    raise CommandFailed("no run here")
