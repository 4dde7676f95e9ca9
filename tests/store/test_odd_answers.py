"""Whole runs against providers that answer nonsense, all real but they: nothing breaks, nothing leaks (G9, G10)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import pytest

from tests.senders.every_kind import EXAMPLES, GOOGLE
from tests.senders.peers import H1Peer, Peer
from tests.senders.threaded import serving
from tests.store.nonsense import ground
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
HUGE = b"x" * 300_000
TRUE = b'{"ok":"true"}'
NULL = b'{"data":null,"result":null,"error":null,"parameters":[],"errors":{},"sid":[],"ok":null}'
ECHO = b'{"error":"payload-secret","code":"payload-secret ","reason":"\\ud800\\u0000","timestamp":1e400}'


def page(status: str, body: bytes = b"", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (
        status.encode(),
        headers,
        len(body),
        body,
    )


ODD = (
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 13\r\n\r\n<html>no</htm",
    page("500 No", HUGE),
    page("500 No", b'{"ok":tru'),
    page("400 No", TRUE),
    page("400 No", NULL),
    page("503 No", headers=b"retry-after: 1\r\nretry-after: soon\r\n"),
    page("503 No", headers=b"retry-after: -1\r\ndate: yesterday\r\n"),
    page("429 No", headers=b"retry-after: 1e300\r\n"),
    page(
        "429 No",
        headers=b"retry-after: Wed, 31 Dec 9999 23:59:59 GMT\r\ndate: Mon, 01 Jan 0001 00:00:00 GMT\r\n",
    ),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + page("500 No"),
    page("302 Found", headers=b"location: http://169.254.169.254/\r\n"),
    b"HTTP/1.1 304 Same\r\n\r\n",
    page("429 Slow", headers=b"retry-after: 99999999999999999999\r\n"),
    page("999 No"),
    page("000 No"),
    page("500 No", headers=b"x-a: " + b"y" * 60_000 + b"\r\n"),
    page(
        "400 No",
        headers=b"x-amzn-errortype: \xff\xfe payload-secret\r\napns-id: \xf0\x9f\x98\x80\r\n",
    ),
    b"HTTP/1.1 500 No\r\nx-a: " + b"y" * 600_000,
    b"HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\ncut",
    b"HTTP/1.1 500 No\r\ncontent-length: -1\r\n\r\n",
    b"HTTP/1.1 500 No\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x00",
    page("404 No", ECHO),
    page("410 No", ECHO),
    page("403 No", ECHO),
    b"HTTP/1.1 500 \xf0\x9f\x98\x80\0\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    b"\0" * 64,
    b"",
)
# Of those who name every message they take: nothing here is one's name.
STRANGE = (
    page("200 OK", b"<html>welcome to our hotel</html>", b"content-type: text/html\r\n"),
    page("200 OK", NULL),
    page("200 OK", b'{"name":["a"],"MessageId":7,"sid":{},"ts":null,"id":"\\u0000"}'),
    page("202 Accepted", b"[]"),
    page("200 OK", b"\xff\xfe{"),
    page("201 Created", b'{"sid":"payload-secret ","name":"payload-secret\\u0000"}'),
)
NAMING = ("twilio", "telegram", "expo", "slack", "fcm", "apns", "sns", "ses", "aws_sms")
KINDS = ("webhook", "slack_webhook", *NAMING)


@dataclass
class Nonsense:
    """Answers each request with the next, and hangs up. Tokens are granted without a question."""

    answers: Iterator[bytes]
    asked: int = 0
    paths: list[str] = field(default_factory=list)

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H1Peer)  # raw bytes
        if (await peer.request()).headers[":path"] == "/token":
            await peer.write(page("200 OK", b'{"access_token":"token-secret","expires_in":3599}'))
        else:
            self.asked += 1
            await peer.write(next(self.answers))
        await asyncio.sleep(0)
        peer.fin()


def pointed(kind: str, port: int) -> tuple[dict[str, Any], str, str]:
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
        case "fcm":
            account = json.dumps({**GOOGLE, "token_uri": f"{here}/token"})
            return {"endpoint": here}, account, example.recipients[0]
    return {**example.settings, "endpoint": here}, example.secret, example.recipients[0]


@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_breaks_nothing_delivers_nothing_and_tells_nothing(
    kind: str, bench: PostgresBench
) -> None:
    answers = (*ODD, *(STRANGE if kind in NAMING else ()))
    service = Nonsense(cycle(answers))
    with serving(service.script) as port:
        settings, secret, recipient = pointed(kind, port)
        hidden = (recipient, "token-secret", *EXAMPLES[kind].secrets)
        with ground(bench, kind, settings, secret, hidden=hidden) as odd:
            odd.enqueue(recipient, len(answers))
            odd.run_until(lambda: service.asked >= len(answers), 2 * len(answers))
            assert odd.delivered() == 0
            odd.assert_honest()
