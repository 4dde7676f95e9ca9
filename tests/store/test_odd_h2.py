"""Whole runs over TLS and HTTP/2 against push services that break the protocol or drag it out (G9, G10)."""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import pytest
from h2.exceptions import ProtocolError
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
)

from tests.senders.every_kind import BROWSER, EXAMPLES, GOOGLE
from tests.senders.peers import Asked, H2Peer, Peer
from tests.senders.stage import HOST, beat, never, server_context
from tests.senders.threaded import serving
from tests.store.nonsense import BRIEF, PATIENT, ground
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
ECHO = b'{"reason":"payload-secret \\ud800\\u0000","error":{"status":"payload-secret !","message":"\\u0000"}}'
Answer = Callable[[H2Peer, Asked], Awaitable[None]]


def says(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Answer:
    async def answer(peer: H2Peer, asked: Asked) -> None:
        await peer.answer(asked, status, body, headers)

    return answer


def begins(*, then: Callable[[H2Peer, Asked], Awaitable[None]]) -> Answer:
    """An answer of 500 that does not end as it should."""

    async def answer(peer: H2Peer, asked: Asked) -> None:
        await peer.head(asked, 500, (("content-length", "100"),))
        await peer.piece(asked, b"half")
        await then(peer, asked)

    return answer


def raw(*frames: Callable[[int], Frame | bytes]) -> Answer:
    """Frames that no polite server writes, given the stream."""

    async def answer(peer: H2Peer, asked: Asked) -> None:
        for frame in frames:
            made = frame(asked.stream)
            peer._writer.write(made if isinstance(made, bytes) else made.serialize())
        await peer._writer.drain()

    return answer


async def cut(peer: H2Peer, asked: Asked) -> None:
    peer.reset()


async def leave(peer: H2Peer, asked: Asked) -> None:
    peer.fin()


async def drip(peer: H2Peer, asked: Asked) -> None:
    while not peer._writer.is_closing() and asked.stream not in peer._log.stream_resets:
        await peer.piece(asked, b".")
        await beat()


async def silent(peer: H2Peer, asked: Asked) -> None:
    await never()


async def away(peer: H2Peer, asked: Asked) -> None:
    await peer.go_away(asked.stream)
    peer.fin()


async def hinted(peer: H2Peer, asked: Asked) -> None:
    for _ in range(20):
        await peer.head(asked, 103)
    await peer.answer(asked, 500, b"")


async def internal_error(peer: H2Peer, asked: Asked) -> None:
    await peer.refuse(asked, 2)


def packed(*headers: tuple[bytes, bytes]) -> bytes:
    """Literal headers, never indexed, unchecked."""

    def text(said: bytes) -> bytes:
        assert len(said) < 127
        return bytes([len(said)]) + said

    return b"".join(b"\x10" + text(name) + text(value) for name, value in headers)


def head(*headers: tuple[bytes, bytes], ends: bool = True) -> Callable[[int], Frame]:
    def frame(stream: int) -> Frame:
        flags = ["END_HEADERS", *(["END_STREAM"] if ends else [])]
        return HeadersFrame(stream, data=packed(*headers), flags=flags)

    return frame


def settings(**named: int) -> Callable[[int], Frame]:
    return lambda stream: SettingsFrame(
        0, settings={getattr(SettingsFrame, n): v for n, v in named.items()}
    )


RUDE: tuple[Answer, ...] = (  # after most of them the connection is of no more use
    begins(then=cut),
    begins(then=leave),
    begins(then=away),
    cut,
    leave,
    away,
    raw(lambda stream: b"\xff" * 64),
    raw(lambda stream: b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
    raw(lambda stream: HeadersFrame(stream, data=b"\xff" * 40, flags=["END_HEADERS"])),
    raw(head((b":status", b"payload-secret"))),
    raw(head((b"x-payload-secret", b"y"))),
    raw(head((b":status", b"500"), (b":status", b"200"))),
    raw(head((b":status", b"500"), (b"X-Upper", b"a\0b\r\nc"))),
    raw(head((b":status", b"500"), (b"connection", b"close"), (b"transfer-encoding", b"chunked"))),
    raw(head((b":status", b"999"))),
    raw(lambda stream: DataFrame(stream, data=b"before any head")),
    raw(lambda stream: b"\0\0\1" + b"\0" * 6 + b"x"),
    raw(
        lambda stream: PushPromiseFrame(
            stream, promised_stream_id=2, data=packed((b":path", b"/"))
        ).serialize()
    ),
    raw(lambda stream: RstStreamFrame(stream, error_code=0xFFFFFFFF)),
    raw(settings(MAX_FRAME_SIZE=1)),
    raw(settings(INITIAL_WINDOW_SIZE=2**31 + 5)),
    raw(head((b":status", b"500"), ends=False), lambda stream: b"\xff\xff\xff" + b"\0" * 40),
    raw(
        *(lambda stream: PingFrame(0, opaque_data=b"12345678") for _ in range(3000)),
        head((b":status", b"500")),
    ),
)
SLOW: tuple[Answer, ...] = (silent, drip, begins(then=silent), begins(then=drip))
POLITE: tuple[Answer, ...] = (
    says(500, b"x" * 300_000),
    says(500, b"short", ("content-length", "100")),
    says(500, b"", ("x-a", "y" * 15_000)),
    says(500, b"", *((f"x-{n}", "y" * 1000) for n in range(100))),
    says(400, ECHO, ("content-type", "image/png")),
    says(403, ECHO),
    says(404, ECHO),
    says(410, b'{"reason":"Unregistered","timestamp":1' + b"0" * 400 + b"}"),
    says(429, ECHO, ("retry-after", "1e300")),
    says(503, ECHO, ("retry-after", "-5")),
    says(
        503,
        b"",
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("date", "Mon, 01 Jan 0001 00:00:00 GMT"),
    ),
    says(302, b"", ("location", "https://169.254.169.254/")),
    says(500, b"\x1f\x8b\x00", ("content-encoding", "gzip")),
    hinted,
    internal_error,
)
STRANGE = (says(200, b"<html>welcome to our hotel</html>"), says(202, b"payload-secret"))
KINDS = ("fcm", "apns", "webpush")


@dataclass
class Nonsense:
    """Answers each request with the next. Tokens are granted without a question."""

    answers: Iterator[Answer]
    asked: int = 0
    bugs: list[Exception] = field(default_factory=list)

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        while True:
            asked = await peer.request()
            if asked.headers[":path"] == "/token":
                await peer.answer(asked, 200, b'{"access_token":"token-secret","expires_in":3599}')
                continue
            self.asked += 1
            await self._answer(peer, asked)

    async def _answer(self, peer: H2Peer, asked: Asked) -> None:
        try:
            await next(self.answers)(peer, asked)
        except (ProtocolError, OSError):  # the client has left
            raise
        except Exception as bug:
            if not peer._writer.is_closing():
                self.bugs.append(bug)
            raise ConnectionError from bug


def pointed(kind: str) -> tuple[dict[str, Any], str, str]:
    """Settings, secret and recipient of a channel that leads to the TLS servers."""
    example, here = EXAMPLES[kind], f"https://{HOST}"
    match kind:
        case "fcm":
            account = json.dumps({**GOOGLE, "token_uri": f"{here}/token"})
            return {"endpoint": here}, account, example.recipients[0]
        case "webpush":
            private = {**example.settings, "allow_private_networks": True}
            return private, example.secret, BROWSER.subscription(f"{here}/push/recipient-secret")
    return {**example.settings, "endpoint": here}, example.secret, example.recipients[0]


@pytest.mark.parametrize(("kind", "slow"), [*((kind, False) for kind in KINDS), ("apns", True)])
def test_nonsense_over_h2_breaks_nothing_delivers_nothing_and_tells_nothing(
    kind: str, slow: bool, bench: PostgresBench
) -> None:
    """The slow ones hold their slots together, until their time is up."""
    answers = SLOW if slow else (*RUDE, *POLITE, *(STRANGE if kind != "webpush" else ()))
    service = Nonsense(cycle(answers))
    settings, secret, recipient = pointed(kind)
    hidden = (recipient, "token-secret", *EXAMPLES[kind].secrets)
    slots = len(SLOW) if slow else 1
    with (
        serving(service.script, server_context(alpn=("h2",))) as port,
        ground(
            bench,
            kind,
            settings,
            secret,
            hidden=hidden,
            tls_port=port,
            slots=slots,
            timing=BRIEF if slow else PATIENT,
        ) as odd,
    ):
        odd.enqueue(recipient, len(answers))
        odd.run_until(lambda: service.asked >= len(answers), 2 * len(answers))
        assert service.bugs == []
        assert odd.delivered() == 0
        odd.assert_honest()
