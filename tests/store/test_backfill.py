"""Commands in the database: who begins one makes everybody before him stale, and a page is whole or not at all."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from fencepost.core.backfill import Turn, Verdict
from fencepost.core.bound import Bound
from fencepost.core.command import (
    CommandId,
    Drain,
    Enqueue,
    Label,
    Move,
    Replay,
    Select,
    Word,
)
from fencepost.core.notification import NotificationId
from fencepost.core.operation import OperatorError, Refused
from fencepost.store.backfill import CommandStore
from tests.store.bench import Worker, dead, delivered
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
ROW = {"channel": "web", "recipient": "r", "payload": {"title": "t"}}


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    with PostgresBench(database_url) as opened:
        yield opened


@pytest.fixture
def commands(database_url: str) -> Iterator[CommandStore]:
    store = CommandStore(database_url)
    yield store
    store.close()


def label(number: int = 0, *, id: uuid.UUID | None = None) -> Label:
    return Label(id=CommandId(id or uuid.uuid4()), digest=b"d" * 16, continuation=number)


def rows(count: int, first: int = 1) -> list[tuple[int, dict[str, Any]]]:
    return [(first + number, ROW) for number in range(count)]


def enqueued(bench: PostgresBench) -> int:
    ((count,),) = bench.rows("select count(*) from fencepost.notification", [])
    return int(count)


class TestTurn:
    def test_a_page_of_a_stale_turn_changes_nothing(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        command = Enqueue(label=label(), rows=())
        first = commands.begin(command)
        second = commands.begin(command)
        assert (first.verdict, second.verdict) == (Verdict.BEGUN, Verdict.RESUMED)
        page = commands.enqueue(first.turn, rows(3), [(9, "bad")], {"rows": 3}, last=True)
        assert page.verdict is Verdict.STALE
        assert not commands.end(first.turn, Verdict.DONE, counts={})
        assert not commands.continued(first.turn, 1)
        assert enqueued(bench) == 0
        assert bench.rows("select count(*) from fencepost.command_fault", []) == [(0,)]
        page = commands.enqueue(second.turn, rows(3), [], {"rows": 3}, last=True)
        assert (page.verdict, page.counts["enqueued"]) == (Verdict.DONE, 3)

    @pytest.mark.parametrize("what", ["redrive", "replay"])
    def test_the_same_of_moves_and_copies(
        self, bench: PostgresBench, commands: CommandStore, what: str
    ) -> None:
        ids = parked(bench, 2) if what == "redrive" else sent(bench, 2)
        command = (
            move(ids=tuple(ids)) if what == "redrive" else Replay(label=label(), ids=tuple(ids))
        )
        turn = commands.begin(command).turn
        commands.begin(command)
        page = (
            commands.move(turn, command)
            if isinstance(command, Move)
            else commands.replay(turn, command)
        )
        assert (page.verdict, page.counts) == (Verdict.STALE, {})
        assert enqueued(bench) == 2
        assert bench.rows("select count(*) from fencepost.queue", []) == [(0,)]

    def test_a_page_that_fails_leaves_the_place_where_it_was(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        command = Enqueue(label=label(), rows=())
        turn = commands.begin(command).turn
        commands.enqueue(turn, rows(2), [], {"rows": 2}, last=False)
        bench.admin.execute(
            "alter table fencepost.notification add constraint no check (id < 0) not valid"
        )
        with pytest.raises(OperatorError):
            commands.enqueue(turn, rows(2, 3), [], {"rows": 4}, last=True)
        bench.admin.execute("alter table fencepost.notification drop constraint no")
        begun = commands.begin(command)
        assert (begun.turn.place, begun.counts["enqueued"]) == ({"rows": 2}, 2)

    def test_many_at_once_and_each_page_is_one(
        self, bench: PostgresBench, database_url: str
    ) -> None:
        """Eight deliveries that take the command away from one another, as fast as they can."""
        command = Enqueue(label=label(), rows=())
        pages, start = 40, threading.Barrier(8)

        def deliver(_: int) -> None:
            store = CommandStore(database_url)
            start.wait()
            while (begun := store.begin(command)).verdict in (Verdict.BEGUN, Verdict.RESUMED):
                turn = begun.turn
                while True:
                    at = int(turn.place.get("rows", 0))
                    last = at + 5 >= pages * 5
                    page = store.enqueue(turn, rows(5, at + 1), [], {"rows": at + 5}, last=last)
                    if page.verdict is not Verdict.GOING:
                        break
                    turn = Turn(id=turn.id, fence=turn.fence, place=page.place)
            store.close()

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(deliver, range(8)))
        assert enqueued(bench) == pages * 5
        assert bench.rows(
            "select ending, (counts ->> 'enqueued')::int from fencepost.command", []
        ) == [("done", pages * 5)]

    def test_an_older_message_is_superseded_and_a_newer_one_is_believed(
        self, commands: CommandStore, bench: PostgresBench
    ) -> None:
        id = uuid.uuid4()
        turn = commands.begin(Drain(label=label(0, id=id))).turn
        assert commands.continued(turn, 1)
        assert commands.begin(Drain(label=label(0, id=id))).verdict is Verdict.SUPERSEDED
        assert commands.begin(Drain(label=label(3, id=id))).verdict is Verdict.RESUMED
        assert commands.begin(Drain(label=label(2, id=id))).verdict is Verdict.SUPERSEDED
        assert commands.begin(Drain(label=label(3, id=id))).verdict is Verdict.RESUMED

    def test_another_command_under_the_same_id_differs(
        self, commands: CommandStore, bench: PostgresBench
    ) -> None:
        command = Drain(label=label())
        commands.begin(command)
        other = Label(id=command.label.id, digest=b"other")
        assert commands.begin(Drain(label=other)).verdict is Verdict.DIFFERS
        same_digest = Enqueue(label=command.label, rows=())
        assert commands.begin(same_digest).verdict is Verdict.DIFFERS


def move(**words: Any) -> Move:
    return Move(label=label(), what="redrive", word=Word.REDRIVE, **words)


def parked(bench: PostgresBench, count: int, *, channel: str = "web") -> list[NotificationId]:
    bench.enqueue(count, channel=channel)
    worker = Worker(bench)
    claimed = worker.claim(count, channel=channel)
    worker.settle(*(dead(one.held) for one in claimed))
    return [one.id for one in claimed]


def sent(bench: PostgresBench, count: int) -> list[NotificationId]:
    bench.enqueue(count)
    worker = Worker(bench)
    claimed = worker.claim(count)
    worker.settle(*(delivered(one.held) for one in claimed))
    return [one.id for one in claimed]


ALL = Select(kinds=("dead", "uncertain"))


class TestSelector:
    def test_what_is_parked_after_it_began_is_not_met(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        parked(bench, 3)
        command = move(select=ALL)
        turn = commands.begin(command).turn
        bench.advance(1)
        late = parked(bench, 2)
        counts = whole(commands, turn, command)
        assert counts == {"redriven": 3}
        assert all(bench.standing(id).kind == "dead" for id in late)

    def test_a_filter_that_matches_nothing_still_ends(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        parked(bench, 5)
        command = move(select=Select(kinds=("dead",), channel="post", reason="none"))
        assert whole(commands, commands.begin(command).turn, command) == {}
        assert bench.rows("select ending from fencepost.command", []) == [("done",)]

    def test_one_page_after_the_other_meets_each_once(
        self, bench: PostgresBench, commands: CommandStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fencepost.store.backfill.PARKED_PAGE", 2)
        for _ in range(3):
            parked(bench, 3)
            parked(bench, 2, channel="post")
            bench.advance(1)
        command = move(select=Select(kinds=("dead",), channel="web"))
        assert whole(commands, commands.begin(command).turn, command) == {"redriven": 9}

    @pytest.mark.parametrize(
        ("since", "until", "met"),
        [(None, None, 3), (25, None, 2), (None, 15, 2), (25, 15, 1), (5, None, 0)],
    )
    def test_a_range_counts_back_from_when_it_began(
        self, bench: PostgresBench, commands: CommandStore, since: float, until: float, met: int
    ) -> None:
        for _ in range(3):
            parked(bench, 1)
            bench.advance(10)
        first, last = Bound(seconds_ago=since), Bound(seconds_ago=until)
        command = move(select=Select(kinds=("dead",), since=first, until=last))
        counts = whole(commands, commands.begin(command).turn, command)
        assert counts.get("redriven", 0) == met

    def test_instants_are_the_databases(self, bench: PostgresBench, commands: CommandStore) -> None:
        parked(bench, 1)
        bench.advance(10)
        parked(bench, 1)
        since = Bound(at="2030-01-01T01:00:05+01:00")  # the bench's clock began at midnight UTC
        command = move(select=Select(kinds=("dead",), since=since))
        assert whole(commands, commands.begin(command).turn, command) == {"redriven": 1}

    def test_an_unknown_channel_is_refused(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        command = move(select=Select(kinds=("dead",), channel="nowhere"))
        with pytest.raises(Refused, match="nowhere"):
            commands.move(commands.begin(command).turn, command)


def whole(commands: CommandStore, turn: Turn, command: Move | Replay) -> dict[str, int]:
    """All pages of it."""
    counts: dict[str, int] = {}
    while True:
        page = (
            commands.move(turn, command)
            if isinstance(command, Move)
            else commands.replay(turn, command)
        )
        for name, count in page.counts.items():
            counts[name] = counts.get(name, 0) + count
        if page.verdict is not Verdict.GOING:
            return counts
        turn = Turn(id=turn.id, fence=turn.fence, place=page.place)


class TestReplay:
    def test_its_own_copies_are_not_copied(
        self, bench: PostgresBench, commands: CommandStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fencepost.store.backfill.DELIVERED_PAGE", 2)
        sent(bench, 5)
        command = Replay(label=label(), select=Select(channel="web"))
        turn = commands.begin(command).turn
        page = commands.replay(turn, command)
        worker = Worker(bench)
        worker.settle(*(delivered(one.held) for one in worker.claim()))  # the copies so far arrive
        turn = Turn(id=turn.id, fence=turn.fence, place=page.place)
        assert whole(commands, turn, command) == {"replayed": 3}
        assert sum(commands.count_delivered(Select())) == 7

    def test_two_commands_make_two_copies(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        (id,) = sent(bench, 1)
        for _ in range(2):
            command = Replay(label=label(), ids=(id,))
            assert whole(commands, commands.begin(command).turn, command) == {"replayed": 1}

    def test_a_copy_has_as_much_time_as_the_original_had(
        self, bench: PostgresBench, commands: CommandStore
    ) -> None:
        bench.enqueue(1, expires_in=60)
        worker = Worker(bench)
        claimed = worker.claim_one()
        worker.settle(delivered(claimed.held))
        bench.advance(3600)
        command = Replay(label=label(), ids=(claimed.id,))
        assert whole(commands, commands.begin(command).turn, command) == {"replayed": 1}
        ((left,),) = bench.rows(
            "select extract(epoch from expires_at - fencepost.now_())::int"
            "  from fencepost.notification where replay_of is not null",
            [],
        )
        assert left == 60


def test_the_operators_role_suffices_for_every_command_and_the_workers_does_not(
    bench: PostgresBench, database_url: str
) -> None:
    """Whoever delivers cannot enqueue, redrive or replay; whoever drains is a member of both (docs/deploy.md)."""
    with psycopg.connect(database_url, autocommit=True) as admin:
        for role in ("fencepost_worker", "fencepost_operator"):
            admin.execute(f"alter role {role} login password 'w'".encode())
    worker = CommandStore(f"{database_url} user=fencepost_worker password=w")
    with pytest.raises(Refused, match="may not"):
        worker.begin(Drain(label=label()))
    worker.close()
    store = CommandStore(f"{database_url} user=fencepost_operator password=w")
    ids = tuple(parked(bench, 1))
    for command in (move(ids=ids), Replay(label=label(), ids=ids)):
        assert whole(store, store.begin(command).turn, command)
    turn = store.begin(Enqueue(label=label(), rows=())).turn
    assert store.enqueue(turn, rows(2), [], {}, last=True).counts["enqueued"] == 2
    drain = store.begin(Drain(label=label())).turn
    assert store.end(drain, Verdict.DONE, counts={"claimed": 1})
    assert store.status(drain.id) is not None
    store.close()
