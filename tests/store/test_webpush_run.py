"""Whole runs of Web Push over real TLS: one dead endpoint among good ones, and a key that no endpoint takes."""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from psycopg.types.json import Jsonb

from fencepost.core.access import Database
from fencepost.core.line import Line
from fencepost.core.notification import Kind, NotificationId
from fencepost.senders.dial import Endpoint
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import Settings
from fencepost.store.postgres import PostgresStore
from fencepost.worker import Parts, Worker
from tests.senders.stage import HOST, client_context, server_context
from tests.senders.test_webpush import BROWSER, SUBJECT, VAPID_SECRET, Refusing
from tests.senders.threaded import serving
from tests.store.postgres_bench import PostgresBench
from tests.store.runs import SHORT

pytestmark = pytest.mark.postgres
CHANNEL = """
insert into fencepost.channel (name, sender, settings, secret_reference, on_uncertain)
values ('browser', 'webpush', %s, 'env:VAPID', 'resend')"""
ENQUEUE = "select id from fencepost.enqueue('browser', %s, '{\"title\": \"hello\"}')"
EVENTS = "select notification_id, guarded, why from fencepost.unregistered"
PAUSED = "select pause_reason from fencepost.channel where name = 'browser' and paused_until > fencepost.now_()"


@dataclass
class Site:
    """One site's channel to browsers, and a warm worker for it."""

    bench: PostgresBench
    service: Refusing
    worker: Worker
    lines: list[Line] = field(default_factory=list)

    def enqueue(self, *paths: str) -> list[NotificationId]:
        to = [BROWSER.subscription(f"https://{HOST}/push/{path}") for path in paths]
        rows = [self.bench.rows(ENQUEUE, [subscription]) for subscription in to]
        return [NotificationId(id) for ((id,),) in rows]

    def tick(self) -> None:
        self.worker.deliver(remaining_seconds=6.0, correlation="tick")


def secret(reference: str, *, anew: bool = False) -> str:
    return VAPID_SECRET


@pytest.fixture
def site(bench: PostgresBench) -> Iterator[Site]:
    settings = {"subject": SUBJECT, "allow_private_networks": True}
    bench.admin.execute(CHANNEL, [Jsonb(settings)])
    service = Refusing()
    with serving(service.script, server_context()) as port:

        async def here(host: str, asked_port: int) -> Sequence[Endpoint]:
            return [Endpoint(socket.AF_INET, ("127.0.0.1", port))]

        transport = Transport(context=client_context(), resolve=here)
        lines: list[Line] = []
        parts = Parts(
            store=PostgresStore(bench.url),
            senders=SenderRegistry(secret, transport),
            lines=lines.append,
        )
        known = Settings(database=Database(), installation="test", timing=SHORT)
        with Worker(known, parts) as worker:
            yield Site(bench, service, worker, lines)


def test_a_dead_endpoint_among_good_ones_is_gone_after_three_refusals(site: Site) -> None:
    """D44, the whole way: three attempts with their waits, and a guarded event; the channel goes on."""
    site.service.dead.add("/push/dead")
    (alive,) = site.enqueue("alive")
    site.tick()
    (dead,) = site.enqueue("dead")
    for _ in range(3):
        site.tick()
        site.bench.advance(600.0)
    standing = site.bench.standing(dead)
    assert (standing.kind, standing.reason, standing.attempts) == (Kind.DEAD, "unregistered", 3)
    why = "answered 403, 3 times, while others are accepted"
    assert site.bench.rows(EVENTS) == [(dead, True, why)]
    assert site.bench.rows(PAUSED) == []
    assert site.bench.standing(alive).kind is Kind.DELIVERED


def test_a_key_that_no_endpoint_takes_pauses_the_channel_and_loses_no_subscription(
    site: Site,
) -> None:
    site.service.dead.update(f"/push/{name}" for name in "abcdef")
    ids = site.enqueue(*"abcdef")
    site.tick()
    ((reason,),) = site.bench.rows(PAUSED)
    assert reason.startswith("credentials: answered 403")
    assert {site.bench.standing(id).kind for id in ids} == {None}  # all open
    assert site.bench.rows(EVENTS) == []
    shown = repr(site.lines)
    for secret in (VAPID_SECRET, HOST, "/push/", "hello"):
        assert secret not in shown
