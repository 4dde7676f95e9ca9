"""A runtime killed or frozen in each phase of a command: the next delivery ends it, and nothing is done twice."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from rig.event_source import EventSource
from rig.ground import wait_until
from tests.drills.ground import Ground
from tests.drills.yard import Yard, command

COUNT = 5000
LONG = 60_000
ENQUEUED = "select count(*) from fencepost.notification"
DONE = "select count(*) from fencepost.command where ending = 'done'"
FILL = """
select count(*) from fencepost.enqueue_many(array['way'], array(select 'r' from generate_series(1, {count})),
                                            array(select '{{"title": "t"}}' from generate_series(1, {count})))"""
CLOSE = """
with q as (delete from fencepost.queue returning notification_id, fence)
insert into fencepost.closed (notification_id, closed_at, claimed_at, run_id, fence, attempts, kind, outcome, reason)
select q.notification_id, now(), now(), fencepost.nobody(), q.fence, 1, '{kind}', '{outcome}', '{outcome}' from q"""
HALT = """
create function public.halt() returns trigger language plpgsql as $f$
begin perform pg_advisory_xact_lock(1); return new; end $f$;
create trigger halt before update on fencepost.command for each row when ({when}) execute function public.halt()"""
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'"""
SLOW = """
create function public.slow() returns trigger language plpgsql as $f$
begin perform pg_sleep(0.1); return new; end $f$;
create trigger slow before update of place on fencepost.command for each row
  when (new.fence = 1) execute function public.slow()"""  # so that LONG never fits into one short invocation
A_PAGE = "new.fence = 1 and old.place <> '{}' and new.place <> old.place"  # the second
TOLD_OF_THE_NEXT = "new.fence = 1 and old.fence = 1 and new.continuation = 1"


@contextmanager
def halted(ground: Ground, when: str) -> Iterator[None]:
    """Whoever comes there waits as long as this lasts."""
    ground.connection.execute(HALT.replace("{when}", when).encode())
    with psycopg.connect(ground.url) as blocker:
        blocker.execute("select pg_advisory_xact_lock(1)")
        yield


def closed(ground: Ground, kind: str, outcome: str) -> None:
    ground.connection.execute(FILL.format(count=COUNT).encode())
    ground.connection.execute(CLOSE.format(kind=kind, outcome=outcome).encode())


def ended_by_others(yard: Yard, ground: Ground) -> None:
    """Two healthy runtimes, and the queue comes to rest."""
    healthy = [yard.runtime(timeout_seconds=60) for _ in range(2)]
    with EventSource(yard.queue, healthy):
        over = "the next deliveries to end it"
        wait_until(lambda: ground.number(DONE) == 1 and yard.quiet(), 90, over)
    assert yard.queue.dead() == 0
    ground.assert_conserved()


def work(yard: Yard, ground: Ground, name: str) -> tuple[dict[str, Any], str]:
    """A command of three pages and more, and what must come to COUNT when it was done once."""
    match name:
        case "enqueue":
            return yard.file(COUNT), ENQUEUED
        case "redrive":
            closed(ground, "dead", "rejected")
            return command(
                "redrive", select={}
            ), "select count(*) from fencepost.queue where fence = 1"
        case "resolve":
            closed(ground, "uncertain", "held")
            words = {"resolution": "dead", "why": "their log"}
            return (
                command("resolve", select={}, **words),
                "select count(*) from fencepost.closed where kind = 'dead'",
            )
        case _:
            closed(ground, "delivered", "delivered")
            ids = list(range(1, COUNT + 1))
            return (
                command("replay", ids=ids),
                "select count(distinct replay_of) * (count(*) = count(distinct replay_of))::int"
                "  from fencepost.notification where replay_of is not null",
            )


@pytest.mark.parametrize("name", ["enqueue", "redrive", "resolve", "replay"])
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_in_the_middle_of_a_page(yard: Yard, ground: Ground, name: str, how: str) -> None:
    """Frozen: the others end it, and whoever thaws afterwards finds nothing left to do."""
    body, outcome = work(yard, ground, name)
    doomed = yard.warm(yard.runtime(timeout_seconds=60))
    yard.queue.send(body)
    source = EventSource(yard.queue, [doomed])
    with source:
        with halted(ground, A_PAGE):
            wait_until(lambda: ground.number(WAITING) == 1, 30, "a page in the middle that waits")
            stop_polling(source)
            doomed.kill() if how == "killed" else doomed.freeze()
            source.let_go()
        ended_by_others(yard, ground)
        assert ground.number(outcome) == COUNT
        if how == "frozen":
            doomed.thaw()
    assert ground.number(outcome) == COUNT
    assert ground.number(DONE) == 1


def stop_polling(source: EventSource) -> None:
    """What it has taken it brings to an end; it takes no more."""
    source._stop.set()


def test_after_its_last_page_and_before_the_message_that_carries_it_on(
    yard: Yard, ground: Ground
) -> None:
    """The queue is deaf to this one, so that it can be seen waiting there."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(60)
        own = {"AWS_ENDPOINT_URL_SQS": f"http://127.0.0.1:{deaf.getsockname()[1]}"}
        doomed = yard.warm(yard.runtime(timeout_seconds=5, **own))
        ground.connection.execute(SLOW)
        yard.queue.send(yard.file(LONG))
        with EventSource(yard.queue, [doomed]) as source:
            asking, _ = deaf.accept()
            stop_polling(source)
            doomed.kill()
            asking.close()
    assert 0 < ground.number(ENQUEUED) < LONG
    assert ground.number("select continuation from fencepost.command") == 0
    ended_by_others(yard, ground)
    assert ground.number(ENQUEUED) == LONG


def test_after_the_message_that_carries_it_on_and_before_the_table_knows(
    yard: Yard, ground: Ground
) -> None:
    """Then both are in the queue, and neither knows of the other."""
    doomed = yard.warm(yard.runtime(timeout_seconds=5))
    ground.connection.execute(SLOW)
    source = EventSource(yard.queue, [doomed])
    with halted(ground, TOLD_OF_THE_NEXT):
        yard.queue.send(yard.file(LONG))
        with source:
            wait_until(lambda: ground.number(WAITING) == 1, 30, "the word about the next message")
            stop_polling(source)
            doomed.kill()
            ground.connection.execute("select pg_terminate_backend(pid) from (" + WAITERS + ") w")
    assert yard.queue.count() == 2
    assert ground.number("select continuation from fencepost.command") == 0
    ended_by_others(yard, ground)
    assert ground.number(ENQUEUED) == LONG


WAITERS = WAITING.replace("count(*)", "pid")


def test_five_deliveries_of_one_message_at_once(yard: Yard, ground: Ground) -> None:
    """Five copies, three runtimes, in whatever order."""
    body, outcome = work(yard, ground, "redrive")
    yard.queue.send(*[body] * 5)
    with EventSource(yard.queue, [yard.runtime() for _ in range(3)], batch_size=1):
        over = "all copies to be acknowledged"
        wait_until(lambda: ground.number(DONE) == 1 and yard.quiet(), 90, over)
    assert ground.number(outcome) == COUNT
    assert (ground.number(DONE), yard.queue.dead()) == (1, 0)
    ground.assert_conserved()
