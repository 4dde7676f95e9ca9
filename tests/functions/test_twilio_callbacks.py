"""Calls of Twilio's through the function: evidence in a real database, and nothing of what Twilio did not sign."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fencepost import bootstrap
from fencepost.core.notification import Claimed
from tests.functions.conftest import Context
from tests.senders.claimed import CLAIMED
from tests.senders.twilio_caller import ACCOUNT, SECRET, SETTINGS, TOKEN, call, form_of
from tests.store.bench import Worker, delivered, hold, uncertain
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
Function = Callable[..., dict[str, Any]]
WRITTEN = """select (select count(*) from fencepost.evidence), (select count(*) from fencepost.unregistered),
                    (select count(*) from fencepost.operation)"""
TO_TWILIO = """update fencepost.channel set sender = 'twilio', settings = %s, secret_reference = %s
                where name = %s returning id"""
DELIVERED = form_of("delivered")


@pytest.fixture
def bench(
    database_url: str, environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PostgresBench]:
    """`web` and `post` are channels of two accounts."""
    monkeypatch.setenv("TWILIO", SECRET)
    monkeypatch.setenv("TWILIO_OF_ANOTHER", f"{ACCOUNT}:another")
    with PostgresBench(database_url) as opened:
        for name, place in (("web", "env:TWILIO"), ("post", "env:TWILIO_OF_ANOTHER")):
            opened.rows(TO_TWILIO, [json.dumps(SETTINGS), place, name])
        yield opened


@pytest.fixture
def held(bench: PostgresBench) -> Claimed:
    """The attempt nobody knows of, of a notification that is closed as uncertain for it."""
    bench.enqueue(1)
    worker = Worker(bench)
    text = worker.claim_one()
    worker.settle(uncertain(text.held))
    worker.settle(hold(worker.claim_one().held))
    assert bench.standing(text.id).kind == "uncertain"
    return text


def status(answer: dict[str, Any]) -> int:
    assert set(answer) == {"statusCode"}, "an answer tells nothing else"
    return int(answer["statusCode"])


def lines(out: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, out.splitlines()) if "_aws" not in line]


def counted(out: str, name: str) -> float:
    records = [record for record in map(json.loads, out.splitlines()) if "_aws" in record]
    return sum(sum(record.get(name, [])) for record in records)


def test_what_twilio_delivered_closes_what_was_in_doubt_and_says_so_once(
    bench: PostgresBench,
    callback: Function,
    held: Claimed,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _ in range(2):
        assert status(callback(call(held, DELIVERED), Context())) == 204
    assert bench.standing(held.id).kind == "delivered"
    assert bench.rows(WRITTEN, [])[0][:2] == (1, 0)
    out = capsys.readouterr().out
    assert [line["verdict"] for line in lines(out)] == ["applied", "repeated"]
    assert not [word for word in (TOKEN, "+1415", str(held.idempotency_key)) if word in out]


def test_that_twilio_has_it_stops_further_sends_before_it_has_arrived(
    bench: PostgresBench, callback: Function
) -> None:
    bench.enqueue(1)
    worker = Worker(bench)
    text = worker.claim_one()
    worker.settle(uncertain(text.held))
    assert bench.standing(text.id).kind is None
    assert status(callback(call(text, form_of("queued")), Context())) == 204
    assert bench.standing(text.id).kind == "delivered"


@pytest.mark.parametrize(
    ("code", "kind", "gone"), [("30005", "dead", 1), ("30007", "dead", 0), ("30003", None, 0)]
)
def test_what_did_not_arrive_is_dead_or_open_again_and_who_is_gone_is_told(
    bench: PostgresBench,
    callback: Function,
    held: Claimed,
    code: str,
    kind: str | None,
    gone: int,
) -> None:
    form = form_of("undelivered", ErrorCode=code)
    assert status(callback(call(held, form), Context())) == 204
    assert bench.standing(held.id).kind == kind
    assert bench.rows(WRITTEN, [])[0][:2] == (1, gone)


def test_a_call_that_comes_before_its_run_has_settled_conflicts_with_nothing(
    bench: PostgresBench, callback: Function
) -> None:
    bench.enqueue(1)
    worker = Worker(bench)
    text = worker.claim_one()
    assert status(callback(call(text, form_of("sent")), Context())) == 204
    answer = worker.settle(delivered(text.held))
    assert bench.standing(text.id).kind == "delivered"
    assert "conflict" not in repr(answer).lower()


def test_two_that_were_delivered_are_a_conflict_that_alarms(
    bench: PostgresBench, callback: Function, held: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.redrive(held.id, resend=True)
    worker = Worker(bench)
    again = worker.claim_one()
    worker.settle(delivered(again.held))
    assert status(callback(call(held, DELIVERED), Context())) == 204
    out = capsys.readouterr().out
    assert [(line["level"], line["verdict"]) for line in lines(out)] == [("ERROR", "conflict")]
    assert counted(out, "Conflicts") == 1


def forged(held: Claimed) -> dict[str, dict[str, Any]]:
    unsigned = call(held, DELIVERED)
    del unsigned["headers"]["x-twilio-signature"]
    elsewhere = call(held, DELIVERED)
    elsewhere["requestContext"]["domainName"] = "hooks.example"
    return {
        "no signature": unsigned,
        "another token": call(held, DELIVERED, token="guessed"),
        "another channel's token": call(held, DELIVERED, token="another"),
        "the right token, another channel": call(held, DELIVERED, channel="post"),
        "no such channel": call(held, DELIVERED, channel="nowhere"),
        "a channel of another kind": call(held, DELIVERED, channel="slow"),
        "another form": {**call(held, DELIVERED), "body": call(held, form_of("failed"))["body"]},
        "another host": elsewhere,
    }


@pytest.mark.parametrize("name", forged(CLAIMED))
def test_what_twilio_did_not_sign_changes_nothing_and_learns_nothing(
    bench: PostgresBench,
    callback: Function,
    held: Claimed,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    before = bench.rows(WRITTEN, [])
    assert callback(forged(held)[name], Context()) == {"statusCode": 403}
    assert bench.standing(held.id).kind == "uncertain"
    assert bench.rows(WRITTEN, []) == before
    out = capsys.readouterr().out
    (line,) = lines(out)
    assert (line["level"], line["action"]) == ("WARNING", "callback_refused")
    assert counted(out, "CallbacksRefused") == 1
    assert not [word for word in ("nowhere", "guessed", TOKEN, "+1415") if word in out]


def test_of_what_is_not_here_nothing_is_written_and_twilio_need_not_come_again(
    bench: PostgresBench, callback: Function, held: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    before = bench.rows(WRITTEN, [])
    theirs = replace(held, idempotency_key=uuid4())
    pruned = replace(held, id=type(held.id)(999))
    for row in (theirs, pruned):
        assert status(callback(call(row, DELIVERED), Context())) == 204
    assert status(callback(call(held, form_of("teleported")), Context())) == 204
    assert bench.standing(held.id).kind == "uncertain"
    assert bench.rows(WRITTEN, []) == before
    out = capsys.readouterr().out
    assert [line["verdict"] for line in lines(out)] == ["unknown", "unknown", "no news"]
    assert counted(out, "CallbacksUnknown") == 2


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"body": None}, 400),
        ({"body": "%00%ff", "isBase64Encoded": False}, 400),
        ({"body": "a" * 6_000_000}, 413),
        ({"rawQueryString": "fencepost_notification=1"}, 400),
        ({"requestContext": {"http": {"method": "GET"}}}, 405),
        ({"headers": {}}, 415),
    ],
)
def test_what_is_malformed_is_refused_before_the_database_is_asked(
    callback: Function,
    environment: None,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    answer: int,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    assert callback({**call(CLAIMED, DELIVERED), **changes}, Context()) == {"statusCode": answer}


def test_a_signed_nul_or_a_huge_number_is_evidence_or_nothing_but_never_a_failure(
    bench: PostgresBench, callback: Function, held: Claimed
) -> None:
    odd = form_of("undelivered", ErrorCode="9" * 9, MessageSid="\x00", ErrorMessage="\ud7ff\x00")
    assert status(callback(call(held, odd), Context())) == 204
    assert status(callback(call(held, form_of("sent", MessageSid="\x00" * 9)), Context())) == 204
    huge = replace(held, id=type(held.id)(10**17), fence=type(held.fence)(10**17))
    assert status(callback(call(huge, DELIVERED), Context())) == 204
    assert bench.standing(held.id).kind == "delivered"


@pytest.mark.parametrize("reference", ["env:MISSING", None, "env:KEY_ALONE"])
def test_where_no_secret_can_tell_nobody_is_believed_and_the_log_says_why(
    bench: PostgresBench,
    callback: Function,
    held: Claimed,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    reference: str | None,
) -> None:
    monkeypatch.setenv("KEY_ALONE", "SK" + "1" * 32 + ":verysecret")
    bench.rows(TO_TWILIO, [json.dumps(SETTINGS), reference, "web"])
    assert callback(call(held, DELIVERED), Context()) == {"statusCode": 403}
    out = capsys.readouterr().out
    told, refused = lines(out)
    assert (told["level"], told["action"]) == ("ERROR", "callback_unverifiable")
    assert refused["action"] == "callback_refused"
    assert "verysecret" not in out
    assert bench.standing(held.id).kind == "uncertain"


def test_a_database_that_is_away_is_said_and_a_connection_that_ended_is_dialled_anew(
    bench: PostgresBench,
    callback: Function,
    held: Claimed,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    database_url: str,
) -> None:
    assert status(callback(call(held, form_of("teleported")), Context())) == 204  # it is dialled
    name = conninfo_to_dict(database_url)["dbname"]
    end = """select count(pg_terminate_backend(pid)) from pg_stat_activity
              where datname = %s and application_name = 'fencepost operator'"""
    with psycopg.connect(make_conninfo(database_url, dbname="postgres")) as admin:
        assert admin.execute(end, [name]).fetchone() == (1,)
    assert status(callback(call(held, DELIVERED), Context())) == 204
    assert bench.standing(held.id).kind == "delivered"
    bootstrap.lambda_commands().close()
    bootstrap.lambda_commands.cache_clear()
    bootstrap.lambda_callbacks.cache_clear()
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    capsys.readouterr()
    assert callback(call(held, DELIVERED), Context()) == {"statusCode": 503}
    (line,) = lines(capsys.readouterr().out)
    assert (line["level"], line["action"]) == ("ERROR", "callback_not_written")
