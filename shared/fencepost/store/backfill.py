"""Commands of a backfill in the database: `backfill.ports.Commands` over one connection, a statement a page."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg.types.json import Jsonb

from fencepost.core.backfill import Begun, Paged, Turn, Verdict
from fencepost.core.callback import Callback, CallbackChannel
from fencepost.core.command import Drain, Evidence, Lasting, Move, Replay, Select, what_of
from fencepost.core.operation import OperatorError, Refused, SchemaMissing
from fencepost.ports import Access
from fencepost.store import command_words
from fencepost.store.selection import ends_of
from fencepost.store.statement import Statements, connected
from fencepost.store.words import clean

PAGE = 1000  # rows of one transaction
PARKED_PAGE = 1000  # entries looked at for one page of parked ones
DELIVERED_PAGE = 5000  # closed ones looked at for one page of a replay


class CommandStore:
    """Raises `OperatorError` and nothing else of the database's. After `DatabaseAway` the next call dials anew."""

    def __init__(self, access: str | Access) -> None:
        self._access = access
        self._statements: Statements | None = None

    def bound_to(self) -> str | None:
        """The installation this database is bound to."""
        name: str | None = self._value("operator_bound_to", {})
        return name

    def begin(self, command: Lasting | Drain) -> Begun:
        select = command.select if isinstance(command, Move | Replay) else Select()
        words = {
            "id": command.label.id,
            "what": what_of(command),
            "digest": command.label.digest,
            "continuation": command.label.continuation,
            **ends_of(select),
        }
        (row,) = self._rows("command_begin", words)
        turn = Turn(id=command.label.id, fence=row["fence"], place=row["place"])
        return Begun(
            verdict=Verdict(row["verdict"]), turn=turn, counts=row["counts"], reason=row["reason"]
        )

    def enqueue(
        self,
        turn: Turn,
        good: command_words.Numbered,
        bad: Sequence[tuple[int, str]],
        place: Mapping[str, Any],
        *,
        last: bool,
        atomic: bool = False,
    ) -> Paged:
        """`good`: numbers and words of `NewNotification`; `bad`: numbers and faults."""
        words, faults = command_words.rows(good, bad)
        words |= {**_held(turn), "place": Jsonb(dict(place)), "last": last, "atomic": atomic}
        (row,) = self._rows("command_enqueue", words)
        found = dict(zip(row["lines"], row["faults"], strict=True))
        return Paged(
            verdict=Verdict(row["verdict"]),
            counts=row["counts"],
            place=place,
            faults=tuple(sorted({**faults, **found}.items())),
        )

    def move(self, turn: Turn, command: Move) -> Paged:
        """The next page of it. `who` of each move is this command."""
        select = command.select
        words = {
            **_held(turn),
            **_ids(turn, command.ids),
            "word": command.word.value,
            "kinds": list(select.kinds),
            "channel": select.channel,
            "reason": select.reason,
            "who": f"backfill {turn.id}",
            "why": command.why,
            "limit": PARKED_PAGE,
        }
        return self._paged("command_move", words)

    def replay(self, turn: Turn, command: Replay) -> Paged:
        words = {
            **_held(turn),
            **_ids(turn, command.ids),
            "channel": command.select.channel,
            "limit": DELIVERED_PAGE,
        }
        return self._paged("command_replay", words)

    def continued(self, turn: Turn, continuation: int) -> bool:
        """A message with this number is on its way. False: another delivery has taken the command up."""
        done: bool = self._value("command_continued", {**_held(turn), "continuation": continuation})
        return done

    def end(
        self, turn: Turn, ending: Verdict, reason: str | None = None, *, counts: Mapping[str, int]
    ) -> bool:
        words = {
            **_held(turn),
            "ending": ending.value,
            "reason": clean(reason),
            "counts": Jsonb(dict(counts)),
        }
        done: bool = self._value("command_end", words)
        return done

    def evidence(self, evidence: Evidence) -> str:
        """One letter a fact (013_evidence.sql)."""
        words = command_words.evidence(evidence)
        letters: str = self._value("run_evidence", words)
        return letters

    def callback(self, callbacks: Sequence[Callback]) -> str:
        """One letter each (085_callbacks.sql)."""
        letters: str = self._value("callback", command_words.callbacks(callbacks))
        return letters

    def callback_channels(self) -> tuple[CallbackChannel, ...]:
        """Those whose provider calls back."""
        return tuple(CallbackChannel(**row) for row in self._rows("callback_channels", {}))

    def status(self, id: UUID) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._value("command_status", {"id": id})
        return found

    def count_delivered(self, select: Select) -> Iterator[int]:
        """How many a replay would mean, page by page. Reads only."""
        (bounds,) = self._rows("operator_time_range", dict(ends_of(select)))
        words = {**bounds, "channel": select.channel, "limit": DELIVERED_PAGE, "after_id": None}
        more = True
        while more:
            (row,) = self._rows("delivered_page", words)
            yield len(row["ids"])
            words["after_id"], more = row["after_id"], row["more"]

    def hang_up(self) -> None:
        """For another thread: whoever waits for an answer here waits no more. What he said may be done all the same."""
        if self._statements is not None:
            with suppress(OSError, psycopg.Error):  # it ended by itself
                wire = self._statements.connection.fileno()
                with socket.fromfd(wire, socket.AF_INET, socket.SOCK_STREAM) as same:
                    same.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._statements is not None:
            self._statements.connection.close()
            self._statements = None

    def _paged(self, name: str, words: dict[str, Any]) -> Paged:
        (row,) = self._rows(name, words)
        return msgspec.convert(row, Paged)

    def _value(self, name: str, words: dict[str, Any]) -> Any:
        (row,) = self._rows(name, words)
        (value,) = row.values()
        return value

    def _rows(self, name: str, words: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            return self._say().rows(name, words)
        except (Refused, SchemaMissing):
            raise
        except OperatorError:  # away, or not the server it was: the next call dials anew
            self.close()
            raise

    def _say(self) -> Statements:
        if self._statements is None:
            self._statements = Statements(connected(self._access))
        return self._statements


def _held(turn: Turn) -> dict[str, Any]:
    return {"id": turn.id, "fence": turn.fence}


def _ids(turn: Turn, ids: tuple[int, ...] | None) -> dict[str, Any]:
    """The next of them, and whether they are the last; None: by the selector."""
    if ids is None:
        return {"ids": None, "last": False}
    done = int(turn.place.get("ids", 0))
    return {"ids": list(ids[done : done + PAGE]), "last": done + PAGE >= len(ids)}
