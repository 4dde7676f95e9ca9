"""The messages of `fencepost backfill`: made of options and files, sent to a queue or done against a database.

Both ways are the same commands with the same ids: what was sent and is done directly too is still done once.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from fencepost.core.operation import Selector
from fencepost_cli.database import way_in
from fencepost_cli.exit_code import CommandFailed, ExitCode

if TYPE_CHECKING:
    from fencepost.backfill.lines import Batch
    from fencepost.core.backfill import Ended, Paged
    from fencepost.core.command import CommandId
    from fencepost.core.tally import Summary
    from fencepost.store.backfill import CommandStore

MESSAGE_BYTES = 200_000  # of rows; SQS took 262,144 bytes a message for many years
IDS_MAX = 5000  # of one message
SEND_SECONDS = 10.0
Words = Mapping[str, Any]


def part(id: uuid.UUID, number: int) -> str:
    """The id of one message of several: the same again for the same command and part."""
    return str(uuid.uuid5(id, str(number)))


def moving(
    command: str, id: uuid.UUID, meant: Sequence[int] | Selector, **words: Any
) -> Iterator[Words]:
    """One message by selector; by ids as many as they need."""
    said = {name: value for name, value in words.items() if value not in (None, False)}
    if isinstance(meant, Selector):
        yield {"command": command, "id": str(id), "select": _select(meant), **said}
        return
    for number, start in enumerate(range(0, len(meant), IDS_MAX)):
        ids = list(meant[start : start + IDS_MAX])
        yield {"command": command, "id": part(id, number), "ids": ids, **said}


def enqueueing(
    id: uuid.UUID, numbers: Iterator[int], batch: "Batch", channel: str | None
) -> Iterator[tuple[Words, list[int]]]:
    """The good lines of a batch in messages that a queue takes, each with the lines its rows were. `numbers`: of the
    command's messages from 0, so that the same file under the same id is the same messages."""
    rows: list[Any] = []
    lines: list[int] = []
    size = 0
    for line in batch.good:
        row = json.loads(line.text)
        weight = len(json.dumps(row))
        if rows and size + weight > MESSAGE_BYTES:
            yield _enqueue(id, next(numbers), rows, channel), lines
            rows, lines, size = [], [], 0
        rows.append(row)
        lines.append(line.number)
        size += weight
    if rows:
        yield _enqueue(id, next(numbers), rows, channel), lines


def _enqueue(id: uuid.UUID, number: int, rows: list[Any], channel: str | None) -> Words:
    named = {"channel": channel} if channel else {}
    return {"command": "enqueue", "id": part(id, number), "rows": rows, **named}


def _select(selector: Selector) -> dict[str, Any]:
    from fencepost.backfill.bound import written

    words = {
        "channel": selector.channel,
        "reason": selector.reason,
        "since": written(selector.since),
        "until": written(selector.until),
    }
    return {name: value for name, value in words.items() if value is not None}


class Sent:
    """Messages into a queue."""

    def __init__(self, queue_url: str) -> None:
        from fencepost.bootstrap import queue_at

        self._queue = queue_at(queue_url)
        self.messages = 0
        self.counts: Counter[str] = Counter()

    def take(self, words: Words) -> None:
        from fencepost.backfill.commands import command_message

        if not self._queue.send([command_message(words)], SEND_SECONDS):
            why = self._queue.trouble or "it was refused"
            raise CommandFailed(
                f"the queue took no more after {self.messages} messages: {why}",
                ExitCode.DATABASE_AWAY,
            )
        self.messages += 1


class Done:
    """The same messages, done here and now."""

    def __init__(
        self,
        commands: "CommandStore",
        progress: "Callable[[Paged], None]",
        run_once: "Callable[[float, CommandId], Summary]",
    ) -> None:
        from fencepost.backfill.objects import Bucket
        from fencepost.backfill.work import Backfill, Means

        means = Means(
            commands=commands,
            objects=Bucket(),
            run_once=run_once,
            clock=monotonic,
            progress=progress,
        )
        self._backfill = Backfill(means)
        self.messages = 0
        self.counts: Counter[str] = Counter()

    def take(self, words: Words, limit: float = inf) -> "Ended":
        from fencepost.backfill.commands import command_message, read_command
        from fencepost.backfill.ports import SourceAway
        from fencepost.core.backfill import Pace
        from fencepost.core.command import CommandRefused

        try:
            command = read_command(command_message(words))
            ended = self._backfill.do(command, Pace(limit=limit, until=limit))
        except CommandRefused as error:
            raise CommandFailed(str(error)) from None
        except SourceAway as error:
            raise CommandFailed(str(error), ExitCode.DATABASE_AWAY) from None
        self.messages += 1
        self.counts.update(ended.counts)
        if not ended.acknowledged:
            raise CommandFailed(ended.reason or ended.ending.value)
        return ended


Went = Sent | Done


@contextmanager
def command_store(database_url: str | None) -> "Iterator[CommandStore]":
    """Imported here: the driver takes longer to load than all of `--help`."""
    access = way_in(database_url)
    from fencepost.store.backfill import CommandStore

    store = CommandStore(access)
    try:
        yield store
    finally:
        store.close()


def in_words(counts: Mapping[str, int]) -> str:
    said = (f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()) if count)
    return ", ".join(said)
