"""Scale-out in the database: what counts as due, and one wave at a time whoever asks at once."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import psycopg
import pytest

from fencepost.core.drain import Backlog
from fencepost.core.notification import RunId
from fencepost.store.postgres import PostgresStore
from fencepost.store.waves import PostgresWaves
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
BEGIN = "select fencepost.begin_wave(%s, %s::uuid[], 600, null)"
BEGUN = (
    "select verdict from fencepost.begin_command(%s, 'drain', '\\x00', 0, null, null, null, null)"
)
ENDED = "select fencepost.end_command(%s, 1, 'done', null, '{}')"


def store(bench: PostgresBench) -> PostgresWaves:
    assert isinstance(bench.store, PostgresStore)
    return bench.store.waves


def backlog(
    bench: PostgresBench, *channels: str, limit: int = 1000, seconds: float = 60
) -> Backlog:
    return bench.wait(store(bench).backlog(channels, limit, seconds))


def begin(
    bench: PostgresBench,
    *ids: UUID,
    run: UUID | None = None,
    seconds: float = 600,
    part: UUID | None = None,
) -> bool:
    who = RunId(run or uuid.uuid4())
    return bench.wait(store(bench).begin_wave(who, ids, seconds, part))


def end(bench: PostgresBench, id: UUID) -> None:
    """A drain message was done."""
    bench.rows(BEGUN, [id])
    assert bench.rows(ENDED, [id]) == [(True,)]


class TestBacklog:
    def test_what_is_due_and_free_is_counted_and_no_further_than_asked(
        self, bench: PostgresBench
    ) -> None:
        assert backlog(bench) == Backlog(due=0)
        for _ in range(5):
            bench.enqueue()
        bench.enqueue(due_in=100)
        bench.advance(7)
        assert backlog(bench) == Backlog(due=5, oldest_due_seconds=7)
        assert backlog(bench, limit=5) == Backlog(due=5, more=True, oldest_due_seconds=7)
        assert backlog(bench, limit=2) == Backlog(due=2, more=True, oldest_due_seconds=7)
        assert backlog(bench, "post") == Backlog(due=0)
        bench.rows(
            "update fencepost.queue set lease_until = fencepost.now_() + interval '10 s' returning 1",
            [],
        )
        assert backlog(bench) == Backlog(due=0), "whoever holds them sends them"

    def test_a_paused_channel_and_one_nobody_can_send_on_ask_for_nobody(
        self, bench: PostgresBench
    ) -> None:
        bench.enqueue()
        bench.rows("select fencepost.channel_pause('web', 'test', 60)", [])
        assert backlog(bench).due == 0
        bench.advance(61)
        assert backlog(bench).due == 1
        skip = (
            "update fencepost.channel set skip_reason = 'no', skip_revision = revision returning 1"
        )
        bench.rows(skip, [])
        assert backlog(bench).due == 0
        bench.rows("update fencepost.channel set revision = revision + 1 returning 1", [])
        assert backlog(bench).due == 1, "it was said of what the channel was before"

    def test_of_a_channel_with_a_rate_no_more_than_the_rate_lets_through(
        self, bench: PostgresBench
    ) -> None:
        for _ in range(30):
            bench.enqueue()
        bench.rows(
            "update fencepost.channel set rate = 0.1, burst = 1 where name = 'web' returning 1", []
        )
        assert backlog(bench, seconds=60).due == 6
        bench.rows(
            "update fencepost.channel set tokens = 0, filled_at = fencepost.now_() where name = 'web' returning 1",
            [],
        )
        assert backlog(bench, seconds=60) == Backlog(due=0), "dry"


class TestWave:
    def test_one_is_out_until_the_last_of_its_messages_is_done(self, bench: PostgresBench) -> None:
        first = [uuid.uuid4() for _ in range(3)]
        assert begin(bench, *first)
        for id in first:
            assert not begin(bench, uuid.uuid4()), "one is out"
            end(bench, id)
        assert begin(bench, uuid.uuid4())

    def test_a_message_that_is_being_done_is_still_out(self, bench: PostgresBench) -> None:
        id = uuid.uuid4()
        assert begin(bench, id)
        bench.rows(BEGUN, [id])
        assert not begin(bench, uuid.uuid4())

    def test_a_drain_sends_the_next_only_in_the_place_of_the_one_it_belongs_to(
        self, bench: PostgresBench
    ) -> None:
        mine, other, next_ = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
        assert begin(bench, mine, other)
        bench.rows(BEGUN, [mine])
        assert not begin(bench, next_, part=mine), "the other one is out"
        end(bench, other)
        assert not begin(bench, next_, part=uuid.uuid4()), "a drain of nobody's wave"
        assert begin(bench, next_, part=mine)
        end(bench, next_)
        assert not begin(bench, uuid.uuid4()), "what sent it has not ended"
        assert bench.rows(ENDED, [mine]) == [(True,)]
        assert begin(bench, uuid.uuid4())

    def test_a_wave_whose_messages_were_lost_is_in_the_way_no_longer_than_it_said(
        self, bench: PostgresBench
    ) -> None:
        assert begin(bench, uuid.uuid4(), seconds=90)
        bench.advance(89)
        assert not begin(bench, uuid.uuid4())
        bench.advance(2)
        assert begin(bench, uuid.uuid4())

    def test_whoever_sent_none_takes_his_marker_back_and_nobody_elses(
        self, bench: PostgresBench
    ) -> None:
        run, id = RunId(uuid.uuid4()), uuid.uuid4()
        assert begin(bench, id, run=run)
        assert not bench.wait(store(bench).end_wave(RunId(uuid.uuid4()), [id]))
        assert not begin(bench, uuid.uuid4())
        assert bench.wait(store(bench).end_wave(run, [id]))
        assert begin(bench, uuid.uuid4())

    def test_of_a_wave_that_left_in_part_only_that_part_is_waited_for(
        self, bench: PostgresBench
    ) -> None:
        run, left, lost, mine = RunId(uuid.uuid4()), uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
        assert begin(bench, mine)
        assert begin(bench, left, lost, run=run, part=mine)
        assert bench.wait(store(bench).end_wave(run, [lost]))
        end(bench, left)
        assert not begin(bench, uuid.uuid4()), "what sent it has not ended"
        end(bench, mine)
        assert begin(bench, uuid.uuid4())

    def test_commands_of_past_waves_do_not_pile_up(self, bench: PostgresBench) -> None:
        for _ in range(4):
            ids = [uuid.uuid4() for _ in range(3)]
            assert begin(bench, *ids)
            for id in ids:
                end(bench, id)
        assert bench.rows("select count(*) from fencepost.command", []) == [(3,)]


def test_overlapping_runs_send_one_wave(own_bench: PostgresBench) -> None:
    """Many at once, again and again: each time exactly one may."""
    for _ in range(10):
        own_bench.rows("update fencepost.wave set until = '-infinity' returning 1", [])
        start = Barrier(6)

        def ask(start: Barrier = start) -> bool:
            with psycopg.connect(own_bench.url, autocommit=True) as connection:
                start.wait()
                row = connection.execute(BEGIN, (uuid.uuid4(), [uuid.uuid4()])).fetchone()
                assert row is not None
                return bool(row[0])

        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(lambda _, ask=ask: ask(), range(6)))
        assert sum(answers) == 1


def test_a_marker_that_is_being_set_is_not_waited_for(own_bench: PostgresBench) -> None:
    assert begin(own_bench, uuid.uuid4(), seconds=0)
    with psycopg.connect(own_bench.url) as open_, open_.transaction():
        open_.execute(BEGIN, (uuid.uuid4(), [uuid.uuid4()]))
        assert not begin(own_bench, uuid.uuid4())
