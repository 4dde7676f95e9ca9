"""One message, with a clock of the test's own and a database that only counts."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fencepost.backfill.commands import command_message
from fencepost.backfill.ports import Opened
from fencepost.backfill.work import Backfill, Means, RunOnce, Send
from fencepost.core.backfill import Begun, Ended, Ending, Pace, Paged, Turn, Verdict
from fencepost.core.callback import Callback
from fencepost.core.command import CommandId, Drain, Evidence, Lasting, Move, Replay, S3Object
from fencepost.core.operation import DatabaseAway, Refused
from fencepost.core.tally import Count, Summary
from fencepost.core.tally import Ending as RunEnding

ID = uuid.UUID("5f0c3f4e-6f4b-4b0e-9d5e-0a5d0b6f2c11")
REDRIVE = command_message({"command": "redrive", "id": str(ID), "select": {}})
DRAIN = command_message({"command": "drain", "id": str(ID)})


@dataclass
class Database:
    """Pages of `seconds` each, `pages` of them; what was said to it, in order."""

    pages: int = 3
    seconds: float = 1.0
    began_seconds: float = 0.0
    now: float = 0.0
    said: list[str] = field(default_factory=list)
    trouble: list[Exception] = field(default_factory=list)
    owners: list[str | Exception] = field(default_factory=list)  # as they are found; then ours
    dialling_seconds: float = 0.0

    def clock(self) -> float:
        return self.now

    def bound_to(self) -> str | None:
        self.now += self.dialling_seconds
        owner = self.owners.pop(0) if self.owners else "test"
        if isinstance(owner, Exception):
            raise owner
        return owner

    def begin(self, command: Lasting | Drain) -> Begun:
        if self.trouble:
            raise self.trouble.pop()
        self.said.append("begin")
        self.now += self.began_seconds
        return Begun(
            verdict=Verdict.BEGUN, turn=Turn(id=command.label.id, fence=1, place={}), counts={}
        )

    def move(self, turn: Turn, command: Move) -> Paged:
        self.said.append("page")
        self.now += self.seconds
        self.pages -= 1
        verdict = Verdict.GOING if self.pages else Verdict.DONE
        return Paged(verdict=verdict, counts={"redriven": 1}, place={})

    def replay(self, turn: Turn, command: Replay) -> Paged:
        raise AssertionError("nobody asked for it")

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
        raise AssertionError("nobody asked for it")

    def continued(self, turn: Turn, continuation: int) -> bool:
        self.said.append(f"continued {continuation}")
        return True

    def end(
        self, turn: Turn, ending: Verdict, reason: str | None = None, *, counts: Mapping[str, int]
    ) -> bool:
        self.said.append("end")
        return True

    def evidence(self, evidence: Evidence) -> str:
        return "L" * len(evidence.facts)

    def callback(self, callbacks: Sequence[Callback]) -> str:
        return "A" * len(callbacks)


class Nowhere:
    def open(self, file: S3Object, *, byte: int, etag: str | None) -> Opened:
        raise AssertionError("nobody asked for it")


def never(seconds: float, id: CommandId) -> Summary:
    raise AssertionError("nobody asked for it")


def taken(
    database: Database,
    seconds: float,
    *,
    takes: int | None = 1,
    body: str = REDRIVE,
    run_once: RunOnce = never,
) -> Ended:
    def send(bodies: Sequence[str], within: float) -> Sequence[str]:
        assert takes is not None
        said = [json.loads(body)["continuation"] for body in bodies]
        database.said.append(f"sent {said}")
        return bodies[:takes]

    ways = means(database, send=None if takes is None else send, run_once=run_once)
    return Backfill(ways).take(body, Pace(limit=seconds, until=seconds))


def means(database: Database, *, send: Send | None, run_once: RunOnce) -> Means:
    return Means(
        commands=database,
        objects=Nowhere(),
        run_once=run_once,
        clock=database.clock,
        installation="test",
        send=send,
    )


def test_it_ends_where_there_is_time() -> None:
    database = Database(pages=3)
    assert taken(database, 60).ending is Ending.DONE
    assert database.said == ["begin", "page", "page", "page"]


def test_the_queue_has_it_before_the_table_knows_and_the_message_is_acknowledged() -> None:
    database = Database(pages=9)
    ended = taken(database, 4)
    assert (ended.ending, ended.counts) == (Ending.CONTINUED, {"redriven": 3})
    assert database.said == ["begin", "page", "page", "page", "sent [1]", "continued 1"]


def test_a_queue_that_took_nothing_is_not_told_to_the_table() -> None:
    database = Database(pages=9)
    assert taken(database, 4, takes=0).ending is Ending.AWAY
    assert database.said[-1] == "sent [1]"


def test_without_a_queue_it_comes_back() -> None:
    assert taken(Database(pages=9), 4, takes=None).ending is Ending.PUT_BACK


def test_what_was_begun_does_a_page_and_never_only_sends_itself_on() -> None:
    """Else a slow beginning would go round for ever."""
    database = Database(pages=9, began_seconds=2.5)
    assert taken(database, 3).ending is Ending.CONTINUED
    assert database.said == ["begin", "page", "sent [1]", "continued 1"]


EVIDENCE = json.dumps(
    {
        "fencepost": 1,
        "command": "evidence",
        "installation": "test",
        "run": str(ID),
        "facts": [{"notification": 1, "fence": 1, "outcome": "delivered"}],
    }
)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001, 0.5])
@pytest.mark.parametrize("body", [REDRIVE, EVIDENCE, DRAIN])
def test_without_time_the_database_is_not_even_dialled(body: str, seconds: float) -> None:
    database = Database(owners=[AssertionError("asked")])
    assert taken(database, seconds, body=body).ending is Ending.PUT_BACK
    assert database.said == []


def test_a_run_has_the_time_that_is_left_after_its_beginning() -> None:
    """Dialling may have taken most of it."""
    given: list[float] = []

    def run_once(seconds: float, id: CommandId) -> Summary:
        given.append(seconds)
        return Summary(run="r", ended=RunEnding.IDLE, counts=dict.fromkeys(Count, 0))

    taken(Database(began_seconds=12.0), 60, body=DRAIN, run_once=run_once)
    assert given == [48.0]


def test_whose_database_it_is_is_asked_again_of_what_was_dialled_anew() -> None:
    """An answer that was lost is no answer: another installation's database is not worked on."""
    database = Database(owners=[DatabaseAway("gone"), "production"])
    ended = taken(database, 60)
    assert (ended.ending, database.said) == (Ending.REFUSED, [])
    moved = Database(owners=["test", "production"], trouble=[DatabaseAway("gone")])
    assert (taken(moved, 60).ending, moved.said) == (Ending.REFUSED, [])


def test_a_database_that_is_away_is_not_waited_for_by_each_message_of_a_batch() -> None:
    database = Database(owners=[DatabaseAway("gone")] * 9, dialling_seconds=10.0)
    backfill = Backfill(means(database, send=None, run_once=never))
    endings = [backfill.take(REDRIVE, Pace(limit=58, until=58)).ending for _ in range(10)]
    assert endings == [Ending.AWAY] * 10
    assert database.now == 20.0


def test_it_is_not_dialled_again_where_there_is_no_time_for_it() -> None:
    database = Database(owners=[DatabaseAway("gone")] * 9, dialling_seconds=10.0)
    assert taken(database, 10.5).ending is Ending.AWAY
    assert database.now == 10.0


@pytest.mark.parametrize(
    ("trouble", "ending"),
    [
        ([DatabaseAway("gone")], Ending.DONE),
        ([DatabaseAway("gone"), DatabaseAway("gone")], Ending.AWAY),
        ([Refused("no such channel")], Ending.REFUSED),
    ],
)
def test_trouble_with_the_database(trouble: list[Exception], ending: Ending) -> None:
    ended = taken(Database(trouble=list(trouble)), 60)
    assert ended.ending is ending
    assert ended.named["command_id"] == str(ID)


@pytest.mark.parametrize("body", ["x", "{}"])
def test_what_is_no_command_does_not_reach_the_database(body: str) -> None:
    database = Database(trouble=[AssertionError("asked")])
    assert taken(database, 60, body=body).ending is Ending.REFUSED


@pytest.mark.parametrize(
    ("ended", "ending", "said"),
    [
        (RunEnding.DRAINED, Ending.DONE, ["begin", "end"]),
        (RunEnding.IDLE, Ending.DONE, ["begin", "end"]),
        (RunEnding.DEADLINE, Ending.DONE, ["begin", "end"]),
        (RunEnding.NO_TIME, Ending.PUT_BACK, ["begin"]),
        (RunEnding.REFUSED, Ending.AWAY, ["begin"]),
    ],
)
def test_a_drain_is_done_when_its_run_was_one(
    ended: RunEnding, ending: Ending, said: list[str]
) -> None:
    def run_once(seconds: float, id: CommandId) -> Summary:
        assert seconds == 60
        return Summary(run="r", ended=ended, counts=dict.fromkeys(Count, 0))

    database = Database()
    assert taken(database, 60, body=DRAIN, run_once=run_once).ending is ending
    assert database.said == said
