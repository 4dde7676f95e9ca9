"""A batch of commands through the whole of it: the function and a real database."""

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from fencepost.core.exchange import Facts
from fencepost.core.message import evidence_messages
from fencepost.core.notification import Fence, Held, NotificationId, RunId
from fencepost.core.reply import Phase
from fencepost.core.step import Unsaid
from tests.functions.backfill_ground import batch, command, enqueue, failed, row
from tests.functions.conftest import Context, Ground
from tests.store.bench import Worker, dead, delivered, hold, uncertain
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
Function = Callable[..., dict[str, Any]]
OPEN = "select count(*) from fencepost.queue"
ENQUEUED = "select count(*) from fencepost.notification"
HOSTILE = {
    "empty": "",
    "no JSON": "hello",
    "NUL": '{"version":1,"command":"drain","id":"\0"}',
    "deep": "[" * 100_000,
    "deep in a row": '{"version":1,"command":"enqueue","id":"'
    + str(uuid.uuid4())
    + '","rows":['
    + "[" * 100_000
    + "]" * 100_000
    + "]}",
    "junk": "\u00e9" * (128 * 1024),
    "an array": "[1]",
    "no version": '{"command":"drain"}',
    "unknown version": '{"version":2,"command":"drain","id":"' + str(uuid.uuid4()) + '"}',
    "version of another type": '{"version":true,"command":"drain","id":"'
    + str(uuid.uuid4())
    + '"}',
    "unknown command": json.dumps(command("explode")),
    "unknown key": json.dumps(command("drain", now=True)),
    "id of another type": '{"version":1,"command":"drain","id":7}',
    "ids of another type": json.dumps(command("redrive", ids=["1"])),
    "an id out of range": json.dumps(command("redrive", ids=[2**70])),
    "neither ids nor select": json.dumps(command("redrive")),
    "both": json.dumps(command("redrive", ids=[1], select={})),
    "a range without a zone": json.dumps(command("replay", select={"since": "2026-11-30T10:00"})),
    "NUL in a word": json.dumps(command("redrive", ids=[1], why="a\0b")),
    "an unknown channel": json.dumps(command("redrive", select={"channel": "nowhere"})),
    "rows and a file": json.dumps(enqueue(1, s3={"bucket": "bucket", "key": "key"})),
}


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


class TestBatch:
    def test_a_hostile_record_fails_alone_with_one_line(
        self, ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        answer = backfill(batch(enqueue(2), *HOSTILE.values(), enqueue(3)), Context())
        bad = [str(place) for place in range(1, len(HOSTILE) + 1)]
        assert sorted(failed(answer), key=int) == bad
        assert ground.number(OPEN) == 5
        said = [line for line in lines(capsys) if line["message_id"] in bad]
        assert [line["action"] for line in said] == ["command_refused"] * len(bad)
        assert all(0 < len(line["reason"]) <= 200 for line in said)

    def test_a_batch_of_nothing_but_bad_ones_is_no_error_of_the_function(
        self, ground: Ground, backfill: Function
    ) -> None:
        ground.channel()
        assert failed(backfill(batch("x", "y"), Context())) == ["0", "1"]

    @pytest.mark.parametrize("seconds", [2.5, 0.0, -3.0])
    def test_out_of_time_what_remains_is_put_back_on_purpose(
        self, ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str], seconds: float
    ) -> None:
        ground.channel()
        answer = backfill(batch(enqueue(1), command("drain"), "x"), Context(seconds=seconds))
        assert sorted(failed(answer)) == ["0", "1", "2"]
        actions = {line["message_id"]: line["action"] for line in lines(capsys)}
        assert actions == {"0": "command_put_back", "1": "command_put_back", "2": "command_refused"}
        assert ground.number("select count(*) from fencepost.command") == 0

    def test_a_database_that_does_not_answer_costs_no_more_than_the_time_there_is(
        self, ground: Ground, backfill: Function, database_url: str, capsys: Any
    ) -> None:
        """The batch is answered, and not cut off: what was done before is not seen again."""
        ground.channel()
        with psycopg.connect(database_url) as other:
            other.execute("set idle_in_transaction_session_timeout = '30s'")
            other.commit()
            other.execute("lock table fencepost.closed in access exclusive mode")
            held = command("redrive", ids=[1])
            answer = backfill(batch(enqueue(2), held, enqueue(1)), Context(seconds=7))
            other.rollback()
        assert failed(answer) == ["1", "2"]
        actions = [line["action"] for line in lines(capsys)]
        assert actions == ["command_done", "command_away", "command_put_back"]
        assert failed(backfill(batch(held, enqueue(1)), Context())) == []

    def test_another_installations_database_is_left_alone(
        self, ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        ground.connection.execute("update fencepost.installation set name = 'production'")
        assert failed(backfill(batch(enqueue(1)), Context())) == ["0"]
        assert "production" in lines(capsys)[-1]["reason"]
        assert ground.number(OPEN) == 0

    def test_a_connection_that_died_between_two_batches_is_dialled_anew(
        self, ground: Ground, backfill: Function
    ) -> None:
        ground.channel()
        backfill(batch(enqueue(1)), Context())
        ground.connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        assert failed(backfill(batch(enqueue(1)), Context())) == []
        assert ground.number(OPEN) == 2


class TestEnqueue:
    def test_twice_is_once(self, ground: Ground, backfill: Function) -> None:
        ground.channel()
        message = enqueue(3)
        for _ in range(3):
            assert failed(backfill(batch(message, message), Context())) == []
        assert ground.number(ENQUEUED) == 3

    def test_the_same_id_with_other_words_is_refused(
        self, ground: Ground, backfill: Function
    ) -> None:
        ground.channel()
        message = enqueue(3)
        backfill(batch(message), Context())
        assert failed(backfill(batch({**message, "atomic": True}), Context())) == ["0"]
        assert ground.number(ENQUEUED) == 3

    def test_bad_rows_are_counted_and_kept_and_the_good_ones_enqueued(
        self, ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ground.channel()
        message = enqueue(4)
        message["rows"][1]["recipient"] = "\0 secret"
        message["rows"][2]["channel"] = "nowhere"
        message["rows"] += [7, {"recipient": "secret"}]
        swapped = {"channel": "secret@example.org", "recipient": "way", "payload": {}}
        message["rows"] += [swapped, {**row(1), "secret@example.org": 1}]
        assert failed(backfill(batch(message), Context())) == []
        (line,) = lines(capsys)
        assert (line["action"], line["level"]) == ("command_done", "WARNING")
        assert (line["enqueued"], line["refused"]) == (2, 6)
        faults = ground.connection.execute(
            "select line, fault from fencepost.command_fault order by line"
        ).fetchall()
        assert [line for line, _ in faults] == [2, 3, 5, 6, 7, 8]
        assert "secret" not in repr(faults)

    def test_atomic_means_all_or_none(self, ground: Ground, backfill: Function) -> None:
        ground.channel()
        message = enqueue(1500, atomic=True)
        message["rows"][1400]["channel"] = "nowhere"
        for _ in range(2):
            assert failed(backfill(batch(message), Context())) == ["0"]
        assert ground.number(ENQUEUED) == 0
        assert failed(backfill(batch(enqueue(1500, atomic=True)), Context())) == []
        assert ground.number(ENQUEUED) == 1500


@pytest.fixture
def bench(database_url: str, environment: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("FENCEPOST_INSTALLATION", "test")
    with PostgresBench(database_url) as opened:
        yield opened


def parked(bench: PostgresBench, count: int, *, held: bool = False) -> list[int]:
    bench.enqueue(count)
    worker = Worker(bench)
    claimed = worker.claim(count)
    worker.settle(*((hold if held else dead)(one.held) for one in claimed))
    return [one.id for one in claimed]


def sent(bench: PostgresBench, count: int) -> list[int]:
    bench.enqueue(count)
    worker = Worker(bench)
    claimed = worker.claim(count)
    worker.settle(*(delivered(one.held) for one in claimed))
    return [one.id for one in claimed]


def kinds(bench: PostgresBench) -> Mapping[str, int]:
    rows = bench.rows("select kind::text, count(*) from fencepost.closed group by kind", [])
    return dict(rows)


class TestRedrive:
    def test_by_ids_and_twice(self, bench: PostgresBench, backfill: Function) -> None:
        ids = parked(bench, 3)
        message = command("redrive", ids=ids[:2], why="repaired")
        for _ in range(2):
            assert failed(backfill(batch(message, message), Context())) == []
        assert kinds(bench) == {"dead": 1}
        assert [bench.standing(NotificationId(id)).fence for id in ids[:2]] == [2, 2]

    def test_by_selector(self, bench: PostgresBench, backfill: Function) -> None:
        parked(bench, 5)
        parked(bench, 2, held=True)
        select = {"channel": "web", "reason": "rejected", "until": "0s"}
        backfill(batch(command("redrive", select={"reason": "none"})), Context())
        assert kinds(bench) == {"dead": 5, "uncertain": 2}
        backfill(batch(command("redrive", select=select)), Context())
        assert kinds(bench) == {"uncertain": 2}
        backfill(batch(command("redrive", select={}, resend=True)), Context())
        assert kinds(bench) == {}

    def test_a_late_copy_does_not_redrive_what_was_parked_since(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        parked(bench, 2)
        message = command("redrive", select={})
        backfill(batch(message), Context())
        worker = Worker(bench)
        worker.settle(*(dead(one.held) for one in worker.claim(2)))
        assert failed(backfill(batch(message), Context())) == []
        assert kinds(bench) == {"dead": 2}


class TestResolve:
    @pytest.mark.parametrize(
        ("resolution", "left"),
        [
            ("delivered", {"delivered": 2, "dead": 1}),
            ("dead", {"dead": 3}),
            ("not_delivered", {"dead": 1}),
            ("resend", {"dead": 1}),
        ],
    )
    def test_by_selector_means_uncertain_ones(
        self, bench: PostgresBench, backfill: Function, resolution: str, left: Mapping[str, int]
    ) -> None:
        parked(bench, 2, held=True)
        parked(bench, 1)
        message = command("resolve", resolution=resolution, select={}, why="their log")
        assert failed(backfill(batch(message, message), Context())) == []
        assert kinds(bench) == left

    def test_dead_is_no_word_for_an_open_one(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        (id,) = bench.enqueue(1)
        worker = Worker(bench)
        worker.settle(uncertain(worker.claim_one().held))
        message = command("resolve", resolution="dead", ids=[id], why="x")
        assert failed(backfill(batch(message), Context())) == []
        assert bench.standing(id).doubt


class TestReplay:
    def test_twice_is_one_copy_linked_to_the_old(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        ids = sent(bench, 3)
        parked(bench, 1)
        message = command("replay", select={"channel": "web", "since": "1h"})
        for _ in range(2):
            assert failed(backfill(batch(message, message), Context())) == []
        copies = bench.rows(
            "select replay_of, recipient = (select o.recipient from fencepost.notification o where o.id = n.replay_of)"
            "  from fencepost.notification n where replay_of is not null order by 1",
            [],
        )
        assert copies == [(id, True) for id in ids]

    def test_one_copy_even_where_the_commands_row_is_gone(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        ids = sent(bench, 2)
        message = command("replay", ids=ids)
        backfill(batch(message), Context())
        bench.rows("delete from fencepost.command returning 1", [])
        backfill(batch(message), Context())
        assert bench.rows("select count(*) from fencepost.notification", []) == [(4,)]

    def test_what_was_not_delivered_is_counted_and_left(
        self, bench: PostgresBench, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (id,) = parked(bench, 1)
        assert failed(backfill(batch(command("replay", ids=[id, 999])), Context())) == []
        (line,) = lines(capsys)
        assert (line["dead"], line["unknown"]) == (1, 1)


class TestEvidence:
    def message(self, held: Held, run: RunId, outcome: str = "delivered") -> str:
        facts = Facts(phase=Phase.ANSWERED, status=200, reference="r-1", took_ms=5, detail="a\0b")
        (body,) = evidence_messages("test", run, [Unsaid(held, outcome, facts)])
        return body

    def test_what_a_run_could_not_say_closes_its_notification(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        (id,) = bench.enqueue(1)
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.advance(60)
        other = Worker(bench)
        other.settle(uncertain(other.claim_one().held))
        body = self.message(held, worker.run)
        assert failed(backfill(batch(body, body), Context())) == []
        standing = bench.standing(id)
        assert standing.kind == "delivered"
        assert [(one.fence, one.outcome) for one in standing.evidence] == [(1, "delivered")]

    def test_a_recipient_that_is_gone_is_an_event_though_its_run_could_not_say_so(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        (id, other) = bench.enqueue(2)
        worker = Worker(bench)
        helds = [one.held for one in worker.claim()]
        facts = Facts(status=410, reference="gone_at=1700000000.000", detail="answered 410")
        words = [Unsaid(held, "rejected", facts, held.id == id) for held in helds]
        (body,) = evidence_messages("test", worker.run, words)
        assert failed(backfill(batch(body, body), Context())) == []
        bench.advance(121)
        (told,) = bench.rows("select notification, gone_at from fencepost.unregistered()")
        assert told == (id, datetime.fromtimestamp(1_700_000_000, UTC))
        assert [one.outcome for one in bench.standing(other).evidence] == ["rejected"]

    def test_a_second_delivered_is_counted_where_the_alarm_looks(
        self, bench: PostgresBench, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bench.enqueue(1)
        worker = Worker(bench)
        held = worker.claim_one().held
        bench.advance(60)
        other = Worker(bench)
        other.settle(delivered(other.claim_one().held))
        body = self.message(held, worker.run)
        assert failed(backfill(batch(body), Context())) == []
        told, counted = lines(capsys)
        assert (told["level"], told["conflicts"]) == ("ERROR", 1)
        assert (counted["Conflicts"], counted["service"]) == ([1.0], "test")

    def test_of_another_installation_it_is_refused(
        self, bench: PostgresBench, backfill: Function
    ) -> None:
        (body,) = evidence_messages(
            "staging",
            RunId(uuid.uuid4()),
            [Unsaid(Held(NotificationId(1), Fence(1)), "delivered", Facts())],
        )
        assert failed(backfill(batch(body), Context())) == ["0"]
        assert bench.rows("select count(*) from fencepost.evidence", []) == [(0,)]


class TestDrain:
    def test_runs_the_worker_with_the_leases_of_the_schedule(
        self, ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Once for all that asked for it in one batch."""
        ground.channel()
        ground.enqueue(7)
        message = command("drain")
        assert failed(backfill(batch(message, message, command("drain")), Context())) == []
        assert ground.provider.count().arrivals == 7
        assert ground.number("select count(*) from fencepost.closed where kind='delivered'") == 7
        ended = [line for line in lines(capsys) if line.get("action") == "run_ended"]
        assert len(ended) == 1
        assert ground.number("select count(*) from fencepost.command where ending='done'") == 2

    def test_comes_last_in_its_batch(self, ground: Ground, backfill: Function) -> None:
        ground.channel()
        ground.enqueue(1)
        recipient = f"{ground.provider.url}/dedupes/ok/1/late"
        rows = [{"channel": "way", "recipient": recipient, "payload": {}}]
        answer = backfill(batch(command("drain"), command("enqueue", rows=rows)), Context())
        assert failed(answer) == []
        assert ground.number(OPEN) == 0

    def test_with_too_little_time_for_a_run_it_is_put_back(
        self, ground: Ground, backfill: Function
    ) -> None:
        ground.channel()
        ground.enqueue(1)
        message = command("drain")
        assert failed(backfill(batch(message), Context(seconds=5))) == ["0"]
        assert failed(backfill(batch(message), Context())) == []
        assert ground.number(OPEN) == 0


def test_nobodys_words_are_logged(
    ground: Ground, backfill: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.channel()
    message = enqueue(2)
    message["rows"][0]["payload"] = {"title": "payload-secret", "nonsense": "payload-secret"}
    astray = command("redrive", select={"channel": "payload-secret@example.org"})
    backfill(batch(message, json.dumps(message)[:-9], astray), Context())
    out = capsys.readouterr()
    assert "payload-secret" not in out.out + out.err
    assert "recipient 1" not in out.out + out.err


def test_conserved(ground: Ground, connection: psycopg.Connection, backfill: Function) -> None:
    ground.channel()
    backfill(batch(enqueue(5)), Context())
    assert connection.execute("select holds from fencepost.conservation()").fetchone() == (True,)
