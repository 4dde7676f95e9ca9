"""Whole runs, all real but Expo: a message, its ticket, and what its receipt changes a quarter of an hour on."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from psycopg.types.json import Jsonb

from fencepost.bootstrap import make_worker
from fencepost.core.access import Database
from fencepost.core.explain import explain
from fencepost.core.line import Line
from fencepost.core.notification import AttemptOutcome, Kind, NotificationId
from fencepost.core.tally import Count
from fencepost.settings import Settings
from fencepost.store.operator import Operator
from tests.senders.test_expo import ACCESS, PushService
from tests.senders.threaded import serving
from tests.store.bench import Said
from tests.store.postgres_bench import PostgresBench
from tests.store.runs import SHORT

pytestmark = pytest.mark.postgres
MINUTE = 60.0
CHANNEL = """
insert into fencepost.channel (name, sender, settings, secret_reference, on_uncertain)
values ('app', 'expo', %s, 'env:EXPO_ACCESS_TOKEN', 'resend')"""
ENQUEUE = "select id from fencepost.enqueue('app', %s, '{\"title\": \"hello\"}')"


@dataclass
class App:
    """One Expo app: its channel, its workers, and what they said."""

    bench: PostgresBench
    service: PushService
    lines: list[Line] = field(default_factory=list)

    def enqueue(self, *tokens: str) -> list[NotificationId]:
        rows = [self.bench.rows(ENQUEUE, [f"ExponentPushToken[{token}]"]) for token in tokens]
        return [NotificationId(id) for ((id,),) in rows]

    def tick(self) -> dict[Count, int]:
        """One run of a cold worker."""
        self.lines.clear()
        url = self.bench.url
        settings = Settings(database=Database(url=url), installation="test", timing=SHORT)
        with make_worker(settings, lines=self.lines.append) as worker:
            return dict(worker.deliver(remaining_seconds=6.0, correlation="tick").counts)

    def receipts(self) -> dict[str, object]:
        (line,) = (line for line in self.lines if line.action == "receipts")
        known = ("run_id", "correlation_id")
        return {name: told for name, told in line.particulars.items() if name not in known}


@pytest.fixture
def app(bench: PostgresBench, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("EXPO_ACCESS_TOKEN", ACCESS)
    service = PushService()
    with serving(service.script) as port:
        bench.admin.execute(CHANNEL, [Jsonb({"endpoint": f"http://127.0.0.1:{port}"})])
        yield App(bench, service)


def test_a_ticket_is_delivered_and_its_receipt_asked_for_on_an_idle_tick(app: App) -> None:
    fine, dead, early = app.enqueue("a", "b", "c")
    app.tick()
    tickets = [f"T-{n}" for n in (1, 2, 3)]
    assert {app.bench.standing(id).reason for id in (fine, dead, early)} == {"receipt_due"}
    assert app.service.asked_for == []
    app.bench.advance(15 * MINUTE)
    by_id = dict(app.bench.rows("select notification_id, reference from fencepost.closed"))
    assert sorted(by_id.values()) == tickets
    gone = {"status": "error", "message": "…", "details": {"error": "DeviceNotRegistered"}}
    app.service.tickets = {by_id[fine]: {"status": "ok"}, by_id[dead]: gone}
    app.tick()  # idle
    assert [sorted(asked) for asked in app.service.asked_for] == [tickets]
    assert app.receipts() == {"asked": 3, "delivered": 1, "unregistered": 1, "silent": 1}
    standings = {id: app.bench.standing(id) for id in (fine, dead, early)}
    assert {id: each.reason for id, each in standings.items()} == {
        fine: None,
        dead: "receipt_refused",
        early: "receipt_late",
    }
    assert {each.kind for each in standings.values()} == {Kind.DELIVERED}
    assert standings[dead].evidence == (Said(1, AttemptOutcome.REJECTED),)
    ((event,),) = app.bench.rows("select notification_id from fencepost.unregistered")
    assert event == dead
    app.tick()  # nothing is due any more: nobody is asked
    assert len(app.service.asked_for) == 1
    assert app.bench.conserved()


def test_a_dead_token_takes_nobody_along_and_is_not_sent_again(app: App) -> None:
    """D1: three rows, one of them dead: three messages in all, and none in the next run."""
    first, dead, last = app.enqueue("a", "gone", "c")
    app.tick()
    assert [app.bench.standing(id).kind for id in (first, dead, last)] == [
        Kind.DELIVERED,
        Kind.DEAD,
        Kind.DELIVERED,
    ]
    app.tick()
    assert len(app.service.taken) == 2


def test_a_receipt_that_cannot_be_had_now_is_asked_for_again(app: App) -> None:
    """The access token is refused for a while: nothing is lost, and no tick spins on it."""
    (id,) = app.enqueue("a")
    app.tick()
    app.service.tickets = {"T-1": {"status": "ok"}}
    app.bench.advance(15 * MINUTE)
    app.service.token = "changed"
    app.tick()
    assert app.receipts() == {"asked": 1, "silent": 1}
    app.tick()
    assert [line.action for line in app.lines] == ["run_ended"]
    app.service.token = ACCESS
    app.bench.advance(120 * MINUTE)
    app.tick()
    assert app.bench.standing(id).reason is None


def test_explain_tells_the_story_of_a_receipt(app: App) -> None:
    (id,) = app.enqueue("a")
    app.tick()
    error = {"status": "error", "message": "…", "details": {"error": "InvalidCredentials"}}
    app.service.tickets = {"T-1": error}
    app.bench.advance(15 * MINUTE)
    app.tick()
    assert app.receipts() == {"asked": 1, "credentials": 1, "silent": 0}
    paused = "select pause_reason from fencepost.channel where paused_until > fencepost.now_()"
    assert app.bench.rows(paused) == [("credentials: receipt: InvalidCredentials",)]
    with Operator(app.bench.url, who="tester") as operator:
        seen = operator.inspect(id)
    assert seen is not None
    told = explain(seen)
    assert [moment.text for moment in told.timeline][-2:] == [
        "closed as delivered: receipt_due",
        "evidence from a receipt about attempt 1: failed (provider's reference T-1): InvalidCredentials",
    ]
    assert told.standing.endswith("(receipt_refused)")
    assert (
        told.next == "nothing: its provider accepted it, and told later that it was not delivered"
    )
