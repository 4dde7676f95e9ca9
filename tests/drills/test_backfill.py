"""Commands through a queue, an event source and real runtimes: duplicates, partial batches, deaths, the DLQ."""

import json
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rig.event_source import EventSource, event_of
from rig.ground import wait_until
from tests.drills.ground import Ground
from tests.drills.yard import Yard, command, rows

RECEIVES = 3
ENQUEUED = "select count(*) from fencepost.notification"
HALT = """
create function public.halt() returns trigger language plpgsql as $f$
begin perform pg_advisory_xact_lock(1); return new; end $f$;
create trigger halt before update on fencepost.command for each row
  when (new.place ->> 'line' = '20000') execute function public.halt()"""
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like '%%command_enqueue%%'"""
BUSY = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
   and query like '%%command_enqueue%%'"""
AHEAD = "select (select count(*) from fencepost.notification) - (select (place ->> 'line')::int from fencepost.command)"
LINES = "select coalesce((select (place ->> 'line')::int from fencepost.command), 0)"


@pytest.mark.parametrize("receives_max", [RECEIVES])
def test_a_poison_message_fails_alone_and_ends_in_the_dlq(yard: Yard, ground: Ground) -> None:
    """Its neighbours are done in their first batch, whatever the machine: nothing else can use up their chances."""
    early = command("redrive", select={"channel": "later"})
    yard.queue.send(rows(3), "not json", rows(4), early, rows(5))
    with EventSource(yard.queue, [yard.runtime(), yard.runtime()]) as source:
        wait_until(lambda: yard.queue.dead() == 2, 60, "both to reach the DLQ")
        assert ground.number(ENQUEUED) == 12
        assert yard.quiet()
        ground.channel("later")  # what was missing is there now
        assert yard.queue.bring_back() == 2
        wait_until(lambda: yard.queue.dead() == 1 and yard.quiet(), 60, "the poison to be back")
    assert ground.number("select count(*) from fencepost.command where ending = 'done'") == 4
    received = sum("not json" in delivery.bodies for delivery in source.deliveries)
    assert received == 2 * RECEIVES
    assert all(delivery.invoked.summary is not None for delivery in source.deliveries)
    log = "".join(runtime.log() for runtime in yard.runtimes)
    assert log.count('"action":"command_refused"') == received + RECEIVES


def test_one_message_delivered_twice_at_once_is_done_once(yard: Yard, ground: Ground) -> None:
    count = 30_000
    message = {
        "MessageId": "1",
        "ReceiptHandle": "x",
        "Body": json.dumps(yard.file(count)),
    }
    runtimes = [yard.runtime(timeout_seconds=60), yard.runtime(timeout_seconds=60)]
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda one: one.invoke(event_of([message])), runtimes)
    answers = [one.summary for one in (first, second)]
    assert all(answer is not None for answer in answers), (first, second)
    failures = [len(answer["batchItemFailures"]) for answer in answers if answer is not None]
    assert sorted(failures) in ([0, 0], [0, 1]), (
        "the one that lost its turn comes back, or found it done"
    )
    assert ground.number(ENQUEUED) == count
    assert ground.number("select fence from fencepost.command") == (2 if sum(failures) else 1)
    ground.assert_conserved()


def test_killed_by_its_timeout_in_mid_command_the_next_delivery_goes_on(
    yard: Yard, ground: Ground
) -> None:
    count = 40_000
    doomed, healthy = yard.warm(yard.runtime(timeout_seconds=8)), yard.runtime(timeout_seconds=60)
    ground.connection.execute(HALT)
    with psycopg.connect(ground.url) as blocker:
        blocker.execute("select pg_advisory_xact_lock(1)")
        yard.queue.send(yard.file(count))
        with EventSource(yard.queue, [doomed]) as source:
            wait_until(lambda: ground.number(WAITING) == 1, 30, "a page in the middle that waits")
            doomed.freeze()
            before = len(source.deliveries)  # on a slow machine it was carried on first
            wait_until(lambda: len(source.deliveries) > before, 30, "the timeout")
    assert source.deliveries[before].invoked.timed_out
    wait_until(lambda: ground.number(BUSY) == 0, 10, "the server to end what it was told")
    assert ground.number(LINES) == 20_000, "it was killed in mid-command"
    assert ground.number(AHEAD) == 0, "what is said to be done is what is done"
    with EventSource(yard.queue, [healthy]):
        wait_until(yard.quiet, 60, "the next delivery to end it")
    assert ground.number(ENQUEUED) == count
    assert ground.number("select count(*) from fencepost.command where ending = 'done'") == 1
    assert yard.queue.dead() == 0


def test_what_does_not_fit_is_carried_on_by_the_next_messages(yard: Yard, ground: Ground) -> None:
    count = 100_000
    runtimes = [yard.warm(yard.runtime(timeout_seconds=4)) for _ in range(2)]
    ground.connection.execute(SLOW)
    yard.queue.send(yard.file(count), rows(5))
    with EventSource(yard.queue, runtimes):
        done = "select count(*) from fencepost.command where ending = 'done'"
        wait_until(lambda: ground.number(done) == 2 and yard.quiet(), 120, "its end")
    assert ground.number(ENQUEUED) == count + 5
    assert ground.number("select max(continuation) from fencepost.command") >= 1
    assert yard.queue.dead() == 0


SLOW = """
create function public.slow() returns trigger language plpgsql as $f$
begin perform pg_sleep(0.02); return new; end $f$;
create trigger slow before update of place on fencepost.command for each row
  execute function public.slow()"""  # so that it never fits into one of those invocations


def test_drain_messages_deliver_beside_each_other(yard: Yard, ground: Ground) -> None:
    subjects = ground.enqueue(40)
    yard.queue.send(*(command("drain") for _ in range(4)))
    with EventSource(yard.queue, [yard.runtime(), yard.runtime()], batch_size=1):
        wait_until(lambda: ground.closed() and yard.quiet(), 60, "all to be delivered")
    count = ground.provider.count()
    assert (count.effects, count.duplicate_effects) == (len(subjects), 0)
    ground.assert_conserved()
