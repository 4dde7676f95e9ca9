"""Whole runs against providers that answer nonsense, all real but they: nothing breaks, nothing leaks (G9, G10)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

import pytest
from psycopg.types.json import Jsonb

from fencepost.bootstrap import make_worker
from fencepost.core.access import Database
from fencepost.core.explain import explain
from fencepost.core.line import Line
from fencepost.core.notification import NotificationId
from fencepost.settings import Settings
from fencepost.store.operator import Operator
from tests.senders.every_kind import EXAMPLES
from tests.senders.peers import H1Peer, Peer
from tests.senders.threaded import serving
from tests.store.postgres_bench import PostgresBench
from tests.store.runs import SHORT

pytestmark = pytest.mark.postgres
HUGE = b"x" * 300_000
TRUE = b'{"ok":"true"}'
NULL = b'{"data":null,"result":null,"error":null,"parameters":[],"errors":{},"sid":[],"ok":null}'
ODD = (
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 13\r\n\r\n<html>no</htm",
    b"HTTP/1.1 500 No\r\ncontent-length: 300000\r\n\r\n" + HUGE,
    b"HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\n" + b'{"ok":tru',
    b"HTTP/1.1 400 No\r\ncontent-length: %d\r\n\r\n%b" % (len(TRUE), TRUE),
    b"HTTP/1.1 400 No\r\ncontent-length: %d\r\n\r\n%b" % (len(NULL), NULL),
    b"HTTP/1.1 503 No\r\nretry-after: 1\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 304 Same\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nretry-after: 99999999999999999999\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 999 No\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 000 No\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\ncut",
    b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    b"",
)
KINDS = ("webhook", "slack", "slack_webhook", "twilio", "telegram", "expo")
CHANNEL = """
insert into fencepost.channel (name, sender, settings, secret_reference, on_uncertain, slots, policy)
values ('app', %s, %s, 'env:ODD_SECRET', 'resend', 1, '{"backoff_base_seconds": 600}')"""
OPEN_AGAIN = "update fencepost.channel set paused_until = default, pause_reason = default"
ENQUEUE = "select id from fencepost.enqueue('app', %s, %s)"
PAYLOAD = {"title": "payload-secret", "body": "payload-secret"}


@dataclass
class Nonsense:
    """Answers each request with the next, and hangs up."""

    answers: Iterator[bytes] = field(default_factory=lambda: cycle(ODD))
    asked: int = 0

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H1Peer)  # raw bytes
        await peer.request()
        self.asked += 1
        await peer.write(next(self.answers))
        await asyncio.sleep(0)
        peer.fin()


def pointed(kind: str, port: int) -> tuple[dict[str, object], str, str]:
    """Settings, secret and recipient of a channel that leads to this port."""
    example, here = EXAMPLES[kind], f"http://127.0.0.1:{port}"
    match kind:
        case "webhook":
            settings = {"allow_http": True, "allow_private_networks": True}
            return {**settings}, example.secret, f"{here}/in?token=recipient-secret"
        case "slack_webhook":
            return {}, f"{here}/services/T0/B0/verysecret", "recipient-secret"
        case "telegram":
            return {"endpoint": here}, example.secret, "@recipient_secret"
    return {**example.settings, "endpoint": here}, example.secret, example.recipients[0]


@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_breaks_nothing_delivers_nothing_and_tells_nothing(
    kind: str, bench: PostgresBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, lines = Nonsense(), list[Line]()
    with serving(service.script) as port:
        settings, secret, recipient = pointed(kind, port)
        monkeypatch.setenv("ODD_SECRET", secret)
        bench.admin.execute(CHANNEL, [kind, Jsonb(settings)])
        ids = [
            NotificationId(id)
            for ((id,),) in (bench.rows(ENQUEUE, [recipient, Jsonb(PAYLOAD)]) for _ in ODD)
        ]
        known = Settings(database=Database(url=bench.url), installation="test", timing=SHORT)
        with make_worker(known, lines=lines.append) as worker:
            for _ in range(2 * len(ODD)):
                bench.admin.execute(OPEN_AGAIN)
                worker.deliver(remaining_seconds=6.0, correlation="tick")
                if service.asked >= len(ODD):
                    break
                bench.advance(601)
    assert service.asked >= len(ODD)
    assert bench.rows("select count(*) from fencepost.closed where kind = 'delivered'") == [(0,)]
    assert bench.conserved()
    with Operator(bench.url, who="tester") as operator:
        told = [str(explain(seen)) for seen in (operator.inspect(id) for id in ids) if seen]
    said = json.dumps([str(line) for line in lines] + told)
    assert len(told) == len(ids)
    assert "bug in" not in said
    hidden = ("payload-secret", recipient, *EXAMPLES[kind].secrets)
    assert [each for each in hidden if each in said] == []
