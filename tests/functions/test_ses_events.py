"""Events of SES in the queue of commands: evidence of their attempts, in the database they are of."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fencepost.core.notification import Claimed
from fencepost.senders.aws.tags import tags_of
from tests.functions.backfill_ground import batch, enqueue, failed
from tests.functions.conftest import Context
from tests.store.bench import Worker, delivered, hold, uncertain
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
Function = Callable[..., dict[str, Any]]
AT = "2026-11-30T12:00:00.000Z"
HARD = {"bounceType": "Permanent", "bounceSubType": "General", "timestamp": AT}
WRITTEN = "select (select count(*) from fencepost.evidence), (select count(*) from fencepost.unregistered)"


def event(kind: str, mail: Claimed, **changes: Any) -> dict[str, Any]:
    tags = {name: [value] for name, value in {**tags_of(mail), **changes.pop("tags", {})}.items()}
    return {"eventType": kind, "mail": {"messageId": "0100", "tags": tags}, **changes}


@pytest.fixture
def bench(database_url: str, environment: None) -> Iterator[PostgresBench]:
    with PostgresBench(database_url) as opened:
        yield opened


@pytest.fixture
def held(bench: PostgresBench) -> Claimed:
    """The attempt nobody knows of, of a notification that is closed as uncertain for it."""
    bench.enqueue(1)
    worker = Worker(bench)
    mail = worker.claim_one()
    worker.settle(uncertain(mail.held))
    again = worker.claim_one()
    worker.settle(hold(again.held))
    assert bench.standing(mail.id).kind == "uncertain"
    return mail


def test_a_delivery_closes_what_was_in_doubt_and_says_so_once(
    bench: PostgresBench, backfill: Function, held: Claimed
) -> None:
    said = event("Delivery", held)
    assert failed(backfill(batch(said, said), Context())) == []
    assert failed(backfill(batch(said), Context())) == []
    assert bench.standing(held.id).kind == "delivered"
    assert bench.rows(WRITTEN, []) == [(1, 0)]


def test_a_reject_says_that_nothing_was_sent(
    bench: PostgresBench, backfill: Function, held: Claimed
) -> None:
    assert failed(backfill(batch(event("Reject", held)), Context())) == []
    assert bench.standing(held.id).kind == "dead"


def test_a_bounce_tells_producers_and_the_mail_stays_delivered_in_any_order(
    bench: PostgresBench, backfill: Function, held: Claimed
) -> None:
    for kind in ("Bounce", "Send", "Bounce"):
        assert failed(backfill(batch(event(kind, held, bounce=HARD)), Context())) == []
        assert bench.standing(held.id).kind == "delivered"
    gone = "select notification_id, extract(epoch from gone_at)::float8, why from fencepost.unregistered"
    why = "event Bounce Permanent General"
    assert bench.rows(gone, []) == [(held.id, 1_796_040_000.0, why)]


def test_an_event_that_comes_before_its_run_has_settled_stops_nothing_and_conflicts_with_nothing(
    bench: PostgresBench, backfill: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.enqueue(1)
    worker = Worker(bench)
    mail = worker.claim_one()
    assert failed(backfill(batch(event("Send", mail)), Context())) == []
    answer = worker.settle(delivered(mail.held))
    assert bench.standing(mail.id).kind == "delivered"
    assert "conflict" not in repr(answer).lower()
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (line["facts"], line["conflicts"], line["unknown"]) == (1, 0, 0)


def test_an_event_of_another_installation_or_of_nobody_changes_nothing_and_goes(
    bench: PostgresBench, backfill: Function, held: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = event("Send", held, tags={"fencepost-key": str(uuid.uuid4())})
    nobody = event("Bounce", held, tags={"fencepost-notification": "999"}, bounce=HARD)
    foreign = {"eventType": "Send", "mail": {"messageId": "x"}}
    assert failed(backfill(batch(theirs, nobody, foreign), Context())) == []
    assert bench.standing(held.id).kind == "uncertain"
    assert bench.rows(WRITTEN, []) == [(0, 0)]
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["unknown"] for line in said] == [1, 1, 0]


def test_events_and_commands_share_a_batch(
    bench: PostgresBench, backfill: Function, held: Claimed
) -> None:
    rows = enqueue(1)
    rows["rows"][0]["channel"] = "web"
    assert failed(backfill(batch("x", event("Send", held), rows), Context())) == ["0"]
    assert bench.standing(held.id).kind == "delivered"
    assert bench.rows("select count(*) from fencepost.notification", []) == [(2,)]
