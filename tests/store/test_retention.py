"""What is old goes in small steps that wait for nobody; what is open, parked or promised stays."""

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from fencepost.core.channel import Skip
from fencepost.core.exchange import Verdict, Word
from fencepost.core.notification import AttemptOutcome, NotificationId
from fencepost.core.operation import Refused
from fencepost.core.retention import Pruned
from fencepost.store.migrate import migrate
from fencepost.store.operator import Operator
from fencepost.store.operator_retention import Retention
from fencepost.store.postgres import PostgresStore
from rig.postgres import local_postgres
from tests.store.bench import Worker, dead, delivered, hold, retry
from tests.store.postgres_bench import PostgresBench
from tests.store.session import session
from tests.store.test_plans import READ, Counted

pytestmark = pytest.mark.postgres
DAY = 86400.0
NOTHING = Pruned(journal=0, runs=0, more=False)
LEFT = "select (select count(*) from fencepost.journal), (select count(*) from fencepost.run)"
HISTORY = """
with r as (insert into fencepost.run (id, started_at, seen_at, ended_at)
           select gen_random_uuid(), a.at, a.at, a.at
             from generate_series(1, 4000) g, lateral (select fencepost.now_() - g * interval '1 s' as at) a
           returning id, started_at)
insert into fencepost.journal (run_id, seq, at, claimed)
select id, seq, started_at, array[seq] from r, generate_series(1, 5) seq"""


def prune(bench: PostgresBench, limit: int = 1000) -> Pruned:
    assert isinstance(bench.store, PostgresStore)
    return bench.wait(bench.store.prune(limit))


def a_run(bench: PostgresBench, exchanges: int = 3, *, ends: bool = True) -> Worker:
    """A run that leaves one row of the journal an exchange."""
    bench.enqueue(exchanges)
    worker = Worker(bench)
    words: tuple[Word, ...] = ()
    for _ in range(exchanges):
        (claimed,) = worker.say(*words, claim=worker.want(1)).claimed
        words = (delivered(claimed.held),)
    if ends:
        worker.say(*words, last=True)
    return worker


@pytest.fixture
def retention(bench: PostgresBench) -> Iterator[Retention]:
    with Operator(bench.url, who="test") as operator:
        yield operator.retention


def test_a_run_and_its_journal_go_when_they_are_older_than_they_are_kept(
    bench: PostgresBench,
) -> None:
    a_run(bench)
    bench.advance(14 * DAY - 1)
    young = a_run(bench, 1)
    assert prune(bench) == NOTHING
    bench.advance(2)
    assert prune(bench) == Pruned(journal=4, runs=1, more=False)
    assert bench.rows("select id from fencepost.run") == [(young.run,)]
    assert bench.rows(LEFT) == [(2, 1)]
    assert bench.conserved()


def test_a_run_that_never_ended_goes_by_its_deadline_and_one_that_ended_late_by_its_end(
    bench: PostgresBench,
) -> None:
    a_run(bench, ends=False)
    late = a_run(bench, 1, ends=False)
    bench.advance(30)
    late.say(last=True)
    bench.advance(14 * DAY - 1)
    assert prune(bench) == NOTHING, "a minute's deadline, and half a minute"
    bench.advance(2)
    assert prune(bench).runs == 1, "the one that ended after half a minute"
    bench.advance(30)
    assert prune(bench).runs == 1
    assert bench.rows("select count(*) from fencepost.queue") == [(2,)], "what they held is open"
    assert bench.conserved()


def test_a_step_takes_so_many_rows_and_a_run_goes_after_its_journal(bench: PostgresBench) -> None:
    a_run(bench, 7)
    a_run(bench, 2)
    bench.advance(15 * DAY)
    assert prune(bench, 5) == Pruned(journal=5, runs=0, more=True)
    assert bench.rows(LEFT) == [(6, 2)]
    assert prune(bench, 5) == Pruned(journal=4, runs=1, more=True)
    assert prune(bench, 5) == Pruned(journal=2, runs=1, more=False)
    assert bench.rows(LEFT) == [(0, 0)]


def test_a_step_waits_for_nobody(bench: PostgresBench) -> None:
    held = a_run(bench, 1)
    a_run(bench, 1)
    bench.advance(15 * DAY)
    with session(bench.url) as other, psycopg.connect(bench.url, autocommit=True) as impatient:
        other.rows("select 1 from fencepost.run where id = %s for update", [held.run])
        impatient.execute("set lock_timeout = '200ms'")
        found = impatient.execute("select journal, runs, more from fencepost.prune()").fetchall()
    assert found == [(2, 1, False)]
    assert bench.rows("select id from fencepost.run") == [(held.run,)]


def test_how_long_they_are_kept_can_be_said(bench: PostgresBench, retention: Retention) -> None:
    kept = retention.kept()
    assert (kept.journal, kept.dedupe_keys) == (14 * DAY, 90 * DAY)
    assert retention.kept(journal=2 * DAY).dedupe_keys == 90 * DAY
    a_run(bench)
    bench.advance(2 * DAY + 1)
    assert prune(bench).runs == 1
    for too_short in ({"journal": DAY - 1}, {"dedupe_keys": 0.0}):
        with pytest.raises(Refused, match="a day at least"):
            retention.kept(**too_short)


def test_a_late_word_of_a_run_that_is_gone_is_evidence_and_its_journal_a_stray(
    bench: PostgresBench, retention: Retention
) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    held = worker.claim_one().held
    bench.advance(15 * DAY)
    assert prune(bench).runs == 1
    assert worker.settle(delivered(held)) != [Verdict.APPLIED]
    (again,) = Worker(bench).claim()
    assert (again.id, again.evidence) == (id, AttemptOutcome.DELIVERED)
    assert bench.conserved()
    bench.advance(15 * DAY)
    assert prune(bench) == Pruned(journal=1, runs=1, more=False), "the other run's"
    assert retention.prunable().strays == 1
    assert sum(page.strays for page in retention.prune()) == 1
    assert bench.rows(LEFT) == [(0, 0)]


@pytest.mark.slow
def test_a_step_never_reads_the_whole_journal() -> None:
    """With plans that were made while the tables were empty, and nothing analysed."""
    with local_postgres(settings={"autovacuum": "off"}) as server:
        with psycopg.connect(server.url) as connection:
            migrate(connection)
        with PostgresBench(server.url) as bench, session(bench.url) as own:
            counted = Counted(own, READ)
            step = "select journal, runs, more from fencepost.prune(100)"
            for _ in range(3):
                own.rows(step)
                counted.end("empty")
            bench.rows(HISTORY + " returning 1")
            own.rows(step)
            assert counted.end("nothing old") < 200
            bench.advance(14 * DAY - 3000)
            assert own.rows(step) == [(84, 16, True)]
            assert counted.end("old ones") < 2500


def close(bench: PostgresBench, count: int = 1) -> list[NotificationId]:
    """Delivered at the second attempt, with evidence and an operation."""
    ids = bench.enqueue(count)
    worker = Worker(bench)
    for make in (retry, delivered):
        worker.say(*(make(row.held) for row in worker.claim(count)))
    for id in ids:
        bench.evidence(id, AttemptOutcome.DELIVERED)
        bench.resolve(id, "delivered")
    return ids


def gone(retention: Retention, days: float, **how: Any) -> list[tuple[int, int]]:
    pages = retention.prune_closed(days * DAY, **how)
    return [(page.notifications, page.kept_for_key) for page in pages]


def test_closed_ones_go_whole_and_only_when_they_are_asked_for(
    bench: PostgresBench, retention: Retention
) -> None:
    close(bench, 2)
    bench.advance(91 * DAY)
    (young,) = close(bench)
    list(retention.prune())
    assert bench.rows("select count(*) from fencepost.notification") == [(3,)]
    (page,) = retention.prune_closed(90 * DAY, dry=True)
    assert (page.notifications, page.attempts, page.evidence, page.operations) == (2, 2, 4, 2)
    assert list(retention.prune_closed(90 * DAY)) == [page]
    for table, key in [("notification", "id"), ("closed", "notification_id")]:
        assert bench.rows(f"select {key} from fencepost.{table}") == [(young,)]
    for table in ("attempt", "evidence", "operation"):
        found = bench.rows(f"select distinct notification_id from fencepost.{table}")
        assert found == [(young,)], table
    assert bench.conserved()
    assert gone(retention, 90) == [(0, 0)]


def test_one_that_was_resolved_is_kept_from_then_on(
    bench: PostgresBench, retention: Retention
) -> None:
    """It was held for a hundred days, and somebody has just said that it was delivered."""
    bench.enqueue()
    worker = Worker(bench)
    held = worker.claim_one()
    worker.say(hold(held.held))
    bench.advance(100 * DAY)
    assert bench.resolve(held.id, "delivered") == "delivered"
    (closed,) = bench.rows("select closed_at < fencepost.now_() from fencepost.closed")
    assert closed == (True,), "its attempt ended when it ended"
    for dry in (True, False):
        assert gone(retention, 90, dry=dry) == [(0, 0)]
    bench.advance(91 * DAY)
    assert gone(retention, 90) == [(1, 0)]


def test_a_word_that_came_while_it_was_waited_for_is_seen(
    bench: PostgresBench, retention: Retention
) -> None:
    """Asked of the function that takes what is to go, after it has the locks."""
    bench.enqueue()
    worker = Worker(bench)
    held = worker.claim_one()
    worker.say(hold(held.held))
    bench.advance(100 * DAY)
    take = "select fencepost.lock_closed_(%s, '{delivered}', fencepost.now_() - interval '90 days')"
    bench.resolve(held.id, "delivered")
    assert bench.rows(take, [[held.id]]) == [([],)]
    bench.advance(91 * DAY)
    assert bench.rows(take, [[held.id]]) == [([held.id],)]


def test_open_and_parked_ones_never_go(bench: PostgresBench, retention: Retention) -> None:
    bench.enqueue(2)
    worker = Worker(bench)
    first, second = worker.claim(2)
    worker.say(dead(first.held), hold(second.held))
    cancelled, waiting = bench.enqueue(2)
    bench.cancel(cancelled)
    bench.advance(400 * DAY)
    assert gone(retention, 90) == [(1, 0)]
    left = bench.rows("select id from fencepost.notification order by id")
    assert left == [(first.id,), (second.id,), (waiting,)]
    assert bench.conserved()


def test_a_dedupe_key_is_free_when_its_promise_is_over_and_not_before(
    bench: PostgresBench, retention: Retention
) -> None:
    (id,) = close(bench)
    keyed = "update fencepost.notification set dedupe_key = 'k', created_at = fencepost.now_()"
    bench.rows(f"{keyed} where id = %s returning 1", [id])
    bench.advance(89 * DAY)
    assert gone(retention, 30, dry=True) == [(0, 1)]
    assert gone(retention, 30) == [(0, 1)]
    bench.advance(2 * DAY)
    assert gone(retention, 30) == [(1, 0)]


def test_what_somebody_holds_is_left_and_what_he_made_of_it_is_seen(
    bench: PostgresBench, retention: Retention
) -> None:
    held, free = close(bench, 2)
    bench.advance(91 * DAY)
    with session(bench.url) as other:
        other.rows("select 1 from fencepost.notification where id = %s for no key update", [held])
        assert gone(retention, 90) == [(1, 0)]
    assert bench.rows("select id from fencepost.notification") == [(held,)]
    assert free != held
    assert bench.conserved()


def test_a_fact_about_one_that_is_gone_moves_nothing(
    bench: PostgresBench, retention: Retention
) -> None:
    (id,) = close(bench)
    bench.advance(91 * DAY)
    assert gone(retention, 90) == [(1, 0)]
    bench.evidence(id, AttemptOutcome.DELIVERED)
    assert bench.redrive(id, resend=True) == "unknown"
    assert bench.conserved()


def test_pages_pass_what_stays_and_come_to_an_end(
    bench: PostgresBench, retention: Retention
) -> None:
    ids = close(bench, 7)
    bench.advance(91 * DAY)
    params = {"older_than": 90 * DAY, "after_id": 0, "limit": 3, "dry": True}
    call = "select after_id, more from fencepost.prune_closed(%(older_than)s, %(after_id)s, %(limit)s, %(dry)s)"
    seen = [bench.rows(call, {**params, "after_id": after})[0] for after in (0, ids[2], ids[5])]
    assert seen == [(ids[2], True), (ids[5], True), (ids[6], False)]


def test_nothing_younger_than_a_day_goes(retention: Retention) -> None:
    with pytest.raises(Refused, match="a day at least"):
        gone(retention, 0.5)


# --- what no worker can send on


def note(bench: PostgresBench, worker: Worker, reason: str | None) -> None:
    assert isinstance(bench.store, PostgresStore)
    channel = worker.channels["web"]
    bench.wait(bench.store.note_skips(worker.run, [Skip(channel.id, channel.revision, reason)]))


def skipped(bench: PostgresBench) -> Any:
    told = "select skip_reason, skipped_at, skipped_for_seconds from fencepost.status_report()"
    ((found),) = bench.rows(f"{told} where channel = 'web'")
    return found


def test_what_a_run_cannot_send_on_is_told_until_one_can(bench: PostgresBench) -> None:
    worker = Worker(bench)
    assert worker.channels["web"].skipped is None
    note(bench, worker, "no secret")
    bench.advance(60)
    note(bench, worker, "no secret")
    assert skipped(bench) == ("no secret", "2030-01-01T00:00:00.000Z", 60.0), "since when"
    other = Worker(bench)
    assert other.channels["web"].skipped == "no secret"
    note(bench, other, None)
    assert skipped(bench) == (None, None, None)


def test_what_was_found_of_a_channel_before_it_was_changed_counts_for_nothing(
    bench: PostgresBench,
) -> None:
    stale = Worker(bench)
    note(bench, stale, "no secret")
    bench.repair("web")
    assert skipped(bench) == (None, None, None)
    assert Worker(bench).channels["web"].skipped is None
    note(bench, stale, "still no secret")
    assert skipped(bench) == (None, None, None)
    note(bench, Worker(bench), "another secret is missing")
    note(bench, stale, "still no secret")
    assert skipped(bench)[0] == "another secret is missing"


def test_a_run_that_has_ended_is_not_believed_and_a_busy_row_not_waited_for(
    bench: PostgresBench,
) -> None:
    worker = Worker(bench)
    with session(bench.url) as other:
        other.rows("select 1 from fencepost.channel for update")
        note(bench, worker, "no secret")
    assert skipped(bench) == (None, None, None)
    worker.say(last=True)
    note(bench, worker, "no secret")
    assert skipped(bench) == (None, None, None)


def command(bench: PostgresBench, *, faults: int = 0, ends: bool = True) -> uuid.UUID:
    """A command as its message leaves it."""
    id = uuid.uuid4()
    begin = (
        "select fence from fencepost.begin_command(%s, 'drain', '\\x00', 0, null, null, null, null)"
    )
    ((fence,),) = bench.rows(begin, [id])
    bench.rows(
        "insert into fencepost.command_fault select %s, n, 'bad' from generate_series(1, %s) n returning 1",
        [id, faults],
    )
    if ends:
        bench.rows("select fencepost.end_command(%s, %s, 'done', null, '{}')", [id, fence])
    return id


def commands(bench: PostgresBench) -> tuple[int, int]:
    """How many there are, and how many faults."""
    query = "select (select count(*) from fencepost.command), (select count(*) from fencepost.command_fault)"
    ((there, faults),) = bench.rows(query, [])
    return there, faults


@pytest.mark.parametrize("ends", [True, False])
def test_a_command_goes_once_no_message_can_speak_of_it_any_more(
    bench: PostgresBench, retention: Retention, ends: bool
) -> None:
    """Also one whose message was lost. A journal kept for less does not shorten it: its message would do it again."""
    retention.kept(journal=DAY)
    command(bench, faults=3, ends=ends)
    bench.advance(29 * DAY)
    assert prune(bench) == NOTHING
    assert commands(bench) == (1, 3)
    bench.advance(1.1 * DAY)
    assert prune(bench) == Pruned(journal=0, runs=0, commands=1, more=False)
    assert commands(bench) == (0, 0)


def test_a_command_that_is_still_spoken_of_stays_and_is_kept_as_long_as_the_journal(
    bench: PostgresBench, retention: Retention
) -> None:
    retention.kept(journal=60 * DAY)
    id = command(bench, ends=False)
    bench.advance(59 * DAY)
    bench.rows(
        "select fencepost.begin_command(%s, 'drain', '\\x00', 1, null, null, null, null)", [id]
    )
    bench.advance(59 * DAY)
    prune(bench)
    assert commands(bench) == (1, 0)
    bench.advance(2 * DAY)
    prune(bench)
    assert commands(bench) == (0, 0)


def test_a_step_takes_so_many_rows_of_commands_too_and_waits_for_nobody(
    bench: PostgresBench,
) -> None:
    first = command(bench, faults=7)
    bench.advance(1)
    command(bench, faults=2)
    bench.advance(31 * DAY)
    assert prune(bench, 5).more
    assert commands(bench) == (2, 4)
    with psycopg.connect(bench.url) as busy:
        busy.execute("select 1 from fencepost.command where id = %s for update", (first,))
        assert not prune(bench, 5).more
        assert commands(bench) == (1, 2)
    assert not prune(bench, 5).more
    assert commands(bench) == (0, 0)
