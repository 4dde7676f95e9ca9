"""What does not fit into one invocation: the messages that carry a command on, in every order they may come in."""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import psycopg
import pytest
from moto import mock_aws

from tests.functions.backfill_ground import Function, batch, command, enqueue, failed
from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
COUNT = 60_000
SHORT_SECONDS = (3.3, 6.0, 12.0, 24.0)  # a page or some, never sixty: a slow machine is given more
LONG = Context(seconds=300)
ENQUEUED = "select count(*) from fencepost.notification"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="rows")
        yield


@pytest.fixture
def queue(aws: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    queue = boto3.resource("sqs").create_queue(QueueName="backfill")
    monkeypatch.setenv("FENCEPOST_QUEUE_URL", queue.url)
    return queue


def put(text: bytes, key: str = "rows.jsonl") -> dict[str, str]:
    boto3.client("s3").put_object(Bucket="rows", Key=key, Body=text)
    return {"bucket": "rows", "key": key}


def lines(count: int) -> bytes:
    row = json.dumps({"channel": "way", "recipient": "r", "payload": {"title": "t"}})
    return f"{row}\n".encode() * count


def cut_short(
    ground: Ground, backfill: Function, body: Any, over: Callable[[list[str]], bool] | None = None
) -> list[str]:
    """A delivery that has the time for some pages and not for all; what comes back of it. A try that had not even the
    time for one is made again with more, and what it may have sent before it came back is taken away."""
    ground.connection.execute(SLOW_AT_FIRST)
    for seconds in SHORT_SECONDS:
        back = failed(backfill(batch(body), Context(seconds=seconds)))
        if over(back) if over else not back:
            break
        if url := os.environ.get("FENCEPOST_QUEUE_URL"):
            boto3.client("sqs").purge_queue(QueueUrl=url)
    return back


SLOW_AT_FIRST = """
create or replace function public.slow() returns trigger language plpgsql as $f$
begin perform pg_sleep(0.02); return new; end $f$;
create or replace trigger slow before update of place on fencepost.command for each row
  when (new.fence <= 2) execute function public.slow()"""  # so that a fast machine does not get through either


def next_of(queue: Any) -> str:
    (message,) = queue.receive_messages(MaxNumberOfMessages=10)
    message.delete()
    return str(message.body)


def test_it_goes_on_where_it_stopped(ground: Ground, backfill: Function, queue: Any) -> None:
    ground.channel()
    body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
    assert cut_short(ground, backfill, body) == []
    first = ground.number(ENQUEUED)
    assert 0 < first < COUNT
    carried = next_of(queue)
    assert {**json.loads(body), "continuation": 1} == json.loads(carried)
    assert failed(backfill(batch(carried), LONG)) == []
    assert ground.number(ENQUEUED) == COUNT
    assert queue.receive_messages() == []
    for late in (body, carried, body):
        assert failed(backfill(batch(late), LONG)) == [], "it is known to be done"
    assert ground.number(ENQUEUED) == COUNT


def test_an_older_message_has_nothing_left_to_do(
    ground: Ground, backfill: Function, queue: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first message comes again after the next one was sent: killed before it was acknowledged, or a duplicate."""
    ground.channel()
    body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
    cut_short(ground, backfill, body)
    before = ground.number(ENQUEUED)
    capsys.readouterr()
    assert failed(backfill(batch(body), LONG)) == []
    assert '"action":"command_superseded"' in capsys.readouterr().out
    assert ground.number(ENQUEUED) == before
    next_of(queue)
    assert queue.receive_messages() == [], "no second one is sent for it"


def test_killed_after_the_next_message_was_sent_and_before_that_was_known(
    ground: Ground, backfill: Function, queue: Any
) -> None:
    ground.channel()
    body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
    cut_short(ground, backfill, body)
    ground.connection.execute("update fencepost.command set continuation = 0")
    carried = next_of(queue)
    assert cut_short(ground, backfill, carried) == [], "it was never told of, and is newer"
    further = next_of(queue)
    assert failed(backfill(batch(body), LONG)) == []
    assert failed(backfill(batch(further, further, carried), LONG)) == []
    assert ground.number(ENQUEUED) == COUNT


def test_without_a_queue_the_message_itself_comes_back(
    ground: Ground, backfill: Function, aws: None
) -> None:
    ground.channel()
    body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
    assert cut_short(ground, backfill, body, lambda _: ground.number(ENQUEUED) > 0) == ["0"]
    assert 0 < ground.number(ENQUEUED) < COUNT
    assert failed(backfill(batch(body), LONG)) == []
    assert ground.number(ENQUEUED) == COUNT


def test_a_queue_that_takes_nothing_loses_nothing(
    ground: Ground, backfill: Function, queue: Any
) -> None:
    ground.channel()
    queue.delete()
    body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
    assert cut_short(ground, backfill, body, lambda _: ground.number(ENQUEUED) > 0) == ["0"]
    assert failed(backfill(batch(body), LONG)) == []
    assert ground.number(ENQUEUED) == COUNT


def test_a_long_command_leaves_the_others_their_share(
    ground: Ground, backfill: Function, queue: Any
) -> None:
    ground.channel()
    long = command("enqueue", s3=put(lines(COUNT)))
    ground.connection.execute(SLOW_PAGES)
    answer = backfill(batch(long, enqueue(3), enqueue(4)), Context(seconds=7))
    assert failed(answer) == []
    ended = "select count(*) from fencepost.command where ending = 'done'"
    assert ground.number(ended) == 2


def test_long_commands_leave_a_drain_the_time_of_a_run(
    ground: Ground, backfill: Function, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would come back with each such batch, and end in the DLQ."""
    monkeypatch.setenv("FENCEPOST_SEND_TIMEOUT_SECONDS", "5")  # what a run needs, and some to spare
    ground.channel(slots=50)
    ground.connection.execute(SLOW_PAGES)
    long = [command("enqueue", s3=put(lines(COUNT), f"{number}.jsonl")) for number in range(5)]
    answer = backfill(batch(command("drain"), *long), Context(seconds=24))
    assert failed(answer) == []
    drained = "select count(*) from fencepost.command where what = 'drain' and ending = 'done'"
    assert ground.number(drained) == 1


SLOW_PAGES = """
create function public.slow() returns trigger language plpgsql as $f$
begin perform pg_sleep(0.05); return new; end $f$;
create trigger slow before update of place on fencepost.command for each row execute function public.slow()"""


class TestFile:
    def test_bad_lines_of_every_kind_are_kept_with_their_numbers(
        self, ground: Ground, backfill: Function, aws: None
    ) -> None:
        ground.channel()
        good = lines(1)
        huge = b'{"recipient": "' + b"x" * (9 * 1024 * 1024) + b'"}\n'
        text = b"\xef\xbb\xbf" + good + b"\n" + b"nonsense\n" + huge + good + b"\xff\n" + good[:-1]
        assert failed(backfill(batch(command("enqueue", s3=put(text))), LONG)) == []
        assert ground.number(ENQUEUED) == 3
        faults = ground.connection.execute(
            "select line, fault from fencepost.command_fault order by line"
        ).fetchall()
        assert [line for line, _ in faults] == [3, 4, 6]
        assert faults[1][1] == "longer than 4194304 bytes"

    def test_more_bad_lines_than_are_kept_are_counted(
        self, ground: Ground, backfill: Function, aws: None
    ) -> None:
        ground.channel()
        s3 = put(b"x\n" * 2500 + lines(2))
        assert failed(backfill(batch(command("enqueue", s3=s3)), LONG)) == []
        assert ground.number("select count(*) from fencepost.command_fault") == 1000
        assert ground.number("select (counts ->> 'refused')::int from fencepost.command") == 2500
        assert ground.number(ENQUEUED) == 2

    def test_another_content_under_way_is_refused(
        self, ground: Ground, backfill: Function, queue: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        body = json.dumps(command("enqueue", s3=put(lines(COUNT))))
        cut_short(ground, backfill, body)
        before = ground.number(ENQUEUED)
        put(lines(COUNT + 1))
        assert failed(backfill(batch(next_of(queue)), LONG)) == ["0"]
        assert "not the one the command began with" in capsys.readouterr().out
        assert ground.number(ENQUEUED) == before

    @pytest.mark.parametrize(
        "s3", [{"bucket": "rows", "key": "none"}, {"bucket": "nowhere", "key": "k"}]
    )
    def test_no_such_object(
        self, ground: Ground, backfill: Function, aws: None, s3: dict[str, str]
    ) -> None:
        ground.channel()
        message = command("enqueue", s3=s3)
        assert failed(backfill(batch(message), LONG)) == ["0"]

    def test_it_may_be_there_when_the_message_comes_again(
        self, ground: Ground, backfill: Function, aws: None
    ) -> None:
        ground.channel()
        message = command("enqueue", s3={"bucket": "rows", "key": "late"})
        assert failed(backfill(batch(message), LONG)) == ["0"]
        put(lines(2), "late")
        assert failed(backfill(batch(message), LONG)) == []
        assert ground.number(ENQUEUED) == 2

    def test_one_that_was_packed_is_refused_and_not_a_thousand_bad_lines(
        self, ground: Ground, backfill: Function, aws: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        message = command("enqueue", s3=put(gzip.compress(lines(5))))
        assert failed(backfill(batch(message), LONG)) == ["0"]
        assert "is gzip" in capsys.readouterr().out
        assert ground.number("select count(*) from fencepost.command_fault") == 0

    def test_lines_that_end_as_on_windows_and_in_every_script(
        self, ground: Ground, backfill: Function, aws: None
    ) -> None:
        ground.channel()
        row = {
            "channel": "way",
            "recipient": "r",
            "payload": {"title": "\u00e9\u4f60\U0001f600\u2028"},
        }
        line = json.dumps(row, ensure_ascii=False).encode()
        text = b"\xef\xbb\xbf" + b"\r\n".join([line, b"", b"nonsense", line]) + b"\r\n" + line
        assert failed(backfill(batch(command("enqueue", s3=put(text))), LONG)) == []
        told = ground.connection.execute(
            "select payload ->> 'title' from fencepost.notification"
        ).fetchall()
        assert told == [(row["payload"]["title"],)] * 3  # type: ignore[index]
        assert ground.number("select line from fencepost.command_fault") == 3

    def test_one_that_is_deleted_under_way_is_refused_and_what_was_done_stays(
        self, ground: Ground, backfill: Function, queue: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        where = put(lines(COUNT))
        cut_short(ground, backfill, command("enqueue", s3=where))
        before = ground.number(ENQUEUED)
        boto3.client("s3").delete_object(Bucket=where["bucket"], Key=where["key"])
        carried = next_of(queue)
        assert failed(backfill(batch(carried), LONG)) == ["0"]
        assert "no such object" in capsys.readouterr().out
        assert ground.number(ENQUEUED) == before
        put(lines(COUNT))
        assert failed(backfill(batch(carried), LONG)) == [], "the same content is there again"
        assert ground.number(ENQUEUED) == COUNT

    def test_a_version_is_read_to_its_end_whatever_became_of_the_object(
        self, ground: Ground, backfill: Function, queue: Any
    ) -> None:
        ground.channel()
        s3 = boto3.client("s3")
        s3.put_bucket_versioning(Bucket="rows", VersioningConfiguration={"Status": "Enabled"})
        where = put(lines(COUNT))
        (version,) = s3.list_object_versions(Bucket="rows")["Versions"]
        message = command("enqueue", s3={**where, "version": version["VersionId"]})
        cut_short(ground, backfill, message)
        marker = s3.delete_object(Bucket="rows", Key=where["key"])["VersionId"]
        put(b"other\n")
        assert failed(backfill(batch(next_of(queue)), LONG)) == []
        assert ground.number(ENQUEUED) == COUNT
        deletion = command("enqueue", s3={**where, "version": marker})
        assert failed(backfill(batch(deletion), LONG)) == ["0"]

    def test_a_name_that_no_bucket_can_have_is_refused(
        self, ground: Ground, backfill: Function, aws: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        message = command("enqueue", s3={"bucket": "a b/c", "key": "k"})
        assert failed(backfill(batch(message), LONG)) == ["0"]
        assert '"action":"command_refused"' in capsys.readouterr().out

    def test_an_empty_one_is_done(self, ground: Ground, backfill: Function, aws: None) -> None:
        ground.channel()
        assert failed(backfill(batch(command("enqueue", s3=put(b""))), LONG)) == []
        assert ground.number("select count(*) from fencepost.command where ending='done'") == 1

    def test_atomic_means_all_or_none_and_has_a_limit(
        self, ground: Ground, backfill: Function, aws: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        bad = command("enqueue", s3=put(lines(3000) + b"x\n"), atomic=True)
        assert failed(backfill(batch(bad), LONG)) == ["0"]
        long = command("enqueue", s3=put(lines(10_001)), atomic=True)
        assert failed(backfill(batch(long), LONG)) == ["0"]
        assert "10000 lines" in capsys.readouterr().out
        assert ground.number(ENQUEUED) == 0
        good = command("enqueue", s3=put(lines(3000)), atomic=True)
        assert failed(backfill(batch(good), LONG)) == []
        assert ground.number(ENQUEUED) == 3000


def test_the_database_restarting_between_two_pages_costs_nothing(
    ground: Ground, database_url: str, backfill: Function, aws: None
) -> None:
    """Its connections are cut in mid-command: it is begun again within the same delivery, from where it stands."""
    ground.channel()
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(CUT)
        body = command("enqueue", s3=put(lines(5000)))
        assert failed(backfill(batch(body), LONG)) == []
    assert ground.number(ENQUEUED) == 5000
    assert ground.number("select fence from fencepost.command") == 2


CUT = """
create function public.cut() returns trigger language plpgsql security definer as $f$
begin
  if new.place ->> 'line' = '3000' and new.fence = 1 then
    perform pg_terminate_backend(pg_backend_pid());
  end if;
  return new;
end $f$;
create trigger cut before update on fencepost.command for each row execute function public.cut()"""
