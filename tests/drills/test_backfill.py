"""Commands through a queue, an event source and real runtimes: duplicates, partial batches, deaths, the DLQ."""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rig.event_source import Cloud, EventSource, Queue, event_of, local_cloud
from rig.ground import ROOT, wait_until
from rig.receiver import SECRET
from rig.runtimes import Runtime
from tests.drills.ground import INSTALLATION, TIMING, Ground

TASK_ROOT = ROOT / "functions" / "backfill"
VISIBILITY_SECONDS = 4
RECEIVES_MAX = 3
ENQUEUED = "select count(*) from fencepost.notification"
HALT = """
create function public.halt() returns trigger language plpgsql as $f$
begin perform pg_advisory_xact_lock(1); return new; end $f$;
create trigger halt before update on fencepost.command for each row
  when (new.place ->> 'line' = '20000' and new.fence = 1) execute function public.halt()"""
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like '%%command_enqueue%%'"""
BUSY = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
   and query like '%%command_enqueue%%'"""
AHEAD = "select (select count(*) from fencepost.notification) - (select (place ->> 'line')::int from fencepost.command)"
LINES = "select coalesce((select (place ->> 'line')::int from fencepost.command), 0)"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with local_cloud() as started:
        yield started


class Yard:
    """A drill's queue, bucket and runtimes of the backfill function."""

    def __init__(self, ground: Ground, cloud: Cloud, folder: Path) -> None:
        self.ground, self.cloud, self.folder = ground, cloud, folder
        self.s3 = cloud.client("s3")
        self.bucket = f"rows-{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=self.bucket)
        self.queue = Queue.create(
            cloud, visibility_seconds=VISIBILITY_SECONDS, receives_max=RECEIVES_MAX
        )
        self.runtimes: list[Runtime] = []

    def runtime(self, *, timeout_seconds: int = 20) -> Runtime:
        environment = {
            **self.cloud.environment,
            "DATABASE_URL": self.ground.url,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "FENCEPOST_QUEUE_URL": self.queue.url,
            "DRILL_SECRET": SECRET,
            **TIMING,
        }
        runtime = Runtime(
            environment,
            timeout_seconds=timeout_seconds,
            folder=self.folder,
            name=f"backfill-{len(self.runtimes) + 1}",
            task_root=TASK_ROOT,
        )
        self.runtimes.append(runtime)
        return runtime.start()

    def file(self, count: int) -> dict[str, Any]:
        """An enqueue of a file of so many lines."""
        line = json.dumps({"channel": "way", "recipient": "r", "payload": {"title": "t"}})
        body = "".join(f"{line}\n" for _ in range(count)).encode()
        key = f"{count}.jsonl"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)
        return command("enqueue", s3={"bucket": self.bucket, "key": key})

    def warm(self, runtime: Runtime) -> Runtime:
        """A cold start would eat into the time it has."""
        message = {"MessageId": "0", "ReceiptHandle": "0", "Body": json.dumps(self.file(0))}
        assert runtime.invoke(event_of([message])).summary == {"batchItemFailures": []}
        self.ground.connection.execute("delete from fencepost.command")
        return runtime

    def quiet(self) -> bool:
        return self.queue.count() == 0

    def end(self) -> None:
        for runtime in self.runtimes:
            runtime.end()
        self.queue.sqs.delete_queue(QueueUrl=self.queue.url)
        self.queue.sqs.delete_queue(QueueUrl=self.queue.dlq_url)


@pytest.fixture
def yard(ground: Ground, cloud: Cloud, tmp_path: Path) -> Iterator[Yard]:
    ground.channel()
    yard = Yard(ground, cloud, tmp_path)
    try:
        yield yard
    finally:
        yard.end()


def command(name: str, **words: Any) -> dict[str, Any]:
    return {"version": 1, "command": name, "id": str(uuid.uuid4()), **words}


def rows(count: int, channel: str = "way") -> dict[str, Any]:
    row = {"channel": channel, "recipient": "r", "payload": {"title": "t"}}
    return command("enqueue", rows=[row] * count)


def test_a_poison_message_fails_alone_and_ends_in_the_dlq(yard: Yard, ground: Ground) -> None:
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
    assert received == 2 * RECEIVES_MAX
    assert all(delivery.invoked.summary is not None for delivery in source.deliveries)
    log = "".join(runtime.log() for runtime in yard.runtimes)
    assert log.count('"action":"command_refused"') == received + RECEIVES_MAX


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
            wait_until(lambda: bool(source.deliveries), 30, "the timeout")
    assert source.deliveries[0].invoked.timed_out
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
    yard.queue.send(yard.file(count), rows(5))
    with EventSource(yard.queue, [yard.runtime(timeout_seconds=4) for _ in range(2)]):
        done = "select count(*) from fencepost.command where ending = 'done'"
        wait_until(lambda: ground.number(done) == 2 and yard.quiet(), 120, "its end")
    assert ground.number(ENQUEUED) == count + 5
    assert ground.number("select max(continuation) from fencepost.command") >= 1
    assert yard.queue.dead() == 0


def test_drain_messages_deliver_beside_each_other(yard: Yard, ground: Ground) -> None:
    subjects = ground.enqueue(40)
    yard.queue.send(*(command("drain") for _ in range(4)))
    with EventSource(yard.queue, [yard.runtime(), yard.runtime()], batch_size=1):
        wait_until(lambda: ground.closed() and yard.quiet(), 60, "all to be delivered")
    count = ground.provider.count()
    assert (count.effects, count.duplicate_effects) == (len(subjects), 0)
    ground.assert_conserved()
