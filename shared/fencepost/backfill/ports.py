"""What a backfill stands on: its commands in the database, and files elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from fencepost.core.backfill import Begun, Paged, Turn, Verdict
from fencepost.core.callback import Callback
from fencepost.core.command import Drain, Evidence, Lasting, Move, Replay, S3Object


class Commands(Protocol):
    """Commands of a backfill in the database. Every method raises `OperatorError` and nothing else. A page is done
    whole or not at all, and only while its turn is the command's last: else its verdict is `stale`."""

    def bound_to(self) -> str | None:
        """The installation this database belongs to."""
        ...

    def begin(self, command: Lasting | Drain) -> Begun:
        """Take it up: whoever had it before is stale from now on."""
        ...

    def enqueue(
        self,
        turn: Turn,
        good: Sequence[tuple[int, Mapping[str, Any]]],
        bad: Sequence[tuple[int, str]],
        place: Mapping[str, Any],
        *,
        last: bool,
        atomic: bool = False,
    ) -> Paged:
        """Numbers and words of new notifications, numbers and faults of bad ones, and where the next page begins."""
        ...

    def move(self, turn: Turn, command: Move) -> Paged: ...

    def replay(self, turn: Turn, command: Replay) -> Paged: ...

    def continued(self, turn: Turn, continuation: int) -> bool:
        """A message with this number is on its way to carry it on. False: the turn is stale."""
        ...

    def end(
        self, turn: Turn, ending: Verdict, reason: str | None = None, *, counts: Mapping[str, int]
    ) -> bool: ...

    def evidence(self, evidence: Evidence) -> str:
        """One letter a fact."""
        ...

    def callback(self, callbacks: Sequence[Callback]) -> str:
        """One letter each: U where it is of no notification that is here."""
        ...


class Readable(Protocol):
    """What lines are read from: a file, standard input, an object."""

    def readline(self, size: int, /) -> bytes: ...


class Opened(Struct, frozen=True):
    """A file, open at some byte. `size` is of the whole; `etag` tells its content from any other."""

    stream: Readable
    etag: str
    size: int


class SourceAway(Exception):
    """A file cannot be read just now: one line why."""


class Objects(Protocol):
    """Files elsewhere."""

    def open(self, file: S3Object, *, byte: int, etag: str | None) -> Opened:
        """Open at this byte; with an `etag` only if it still is that content.
        Raises `CommandRefused` where that can never be, `SourceAway` where it cannot be now."""
        ...
