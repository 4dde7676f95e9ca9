"""Where a scripted server and the transport under test meet, and where both must leave nothing behind."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trustme

from fencepost.core.reply import Reply
from fencepost.senders.dial import Endpoint, tls_context
from fencepost.senders.request import Request, read_url
from fencepost.senders.transport import Transport
from tests.senders.peers import Peer, Script, Server

HOST = "hook.test"  # no resolver knows it: whoever reaches the server went to the vetted address
GENEROUS_SECONDS = 60.0
CA = trustme.CA()
CERTIFICATE = CA.issue_cert(HOST)


def server_context(*, alpn: Sequence[str] = ("h2", "http/1.1")) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    context.set_alpn_protocols(list(alpn))
    return context


def client_context() -> ssl.SSLContext:
    context = tls_context()
    CA.configure_trust(context)
    return context


class WallClock:
    """Wall time that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


class Stage:
    """A transport whose resolver leads every name to the servers of this test."""

    def __init__(self) -> None:
        self.clock = WallClock()
        self.endpoints: list[Endpoint] = []
        self.servers: list[Server] = []
        self.scheme = "https"
        self.private_allowed = True
        self.asked_resolver = 0
        self.resolver_stuck: asyncio.Event | None = None
        self.transport = self.new_transport()

    def new_transport(self, **options: Any) -> Transport:
        known = {"context": client_context(), "resolve": self.resolve, "clock": self.clock}
        return Transport(**{**known, **options})

    async def resolve(self, host: str, port: int) -> Sequence[Endpoint]:
        self.asked_resolver += 1
        if self.resolver_stuck is not None:
            await self.resolver_stuck.wait()
        return self.endpoints

    async def serve(
        self, script: Script, *, protocol: str = "h1", streams_max: int | None = None
    ) -> Server:
        """protocol: h1 and h2 over TLS, `plain` is HTTP/1.1 without."""
        alpn = {"h1": ("http/1.1",), "h2": ("h2",)}
        context = None if protocol == "plain" else server_context(alpn=alpn[protocol])
        self.scheme = "http" if protocol == "plain" else "https"
        server = Server(script, context, streams_max)
        await server.start()
        self.servers.append(server)
        self.endpoints = [loopback(server.port)]
        return server

    async def serve_raw_h2(self, script: Callable[[], Awaitable[None]]) -> Server:
        """A server that agrees on h2 in TLS and then speaks none."""
        server = await self.serve(lambda peer: script(), protocol="h2")
        server.listens = False
        return server

    def request(self, body: bytes = b'{"n":1}', host: str = HOST) -> Request:
        origin, target = read_url(
            f"{self.scheme}://{host}/hook", private_allowed=self.private_allowed
        )
        return Request(
            origin=origin, target=target, headers=(("content-type", "text/x"),), body=body
        )

    async def send(
        self, body: bytes = b'{"n":1}', *, timeout_seconds: float = GENEROUS_SECONDS
    ) -> Reply:
        return await self.transport.send(self.request(body), timeout_seconds=timeout_seconds)


async def answers(peer: Peer) -> None:
    """The script of a good server."""
    while True:
        await peer.answer(await peer.request())


async def never() -> None:
    """Keeps a connection open and silent."""
    await asyncio.Event().wait()


async def beat(seconds: float = 0.01) -> None:
    """The pace of a server that drips."""
    loop = asyncio.get_running_loop()
    struck = loop.create_future()
    struck_later = loop.call_later(seconds, struck.set_result, None)
    try:
        await struck
    finally:
        struck_later.cancel()


def loopback(port: int) -> Endpoint:
    return Endpoint(socket.AF_INET, ("127.0.0.1", port))


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Afterwards every socket and every task that the test did not have before is gone."""
    sockets_before, tasks_before = open_files(), asyncio.all_tasks()
    opened = Stage()
    try:
        yield opened
    finally:
        await asyncio.wait_for(opened.transport.close(), GENEROUS_SECONDS)
        for server in opened.servers:
            await server.close()
    await until(lambda: open_files() <= sockets_before, "every socket is closed")
    await until(lambda: asyncio.all_tasks() <= tasks_before, f"ended: {asyncio.all_tasks()}")


def open_files() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208


async def turns(number: int) -> None:
    """Let the loop read what lies in the sockets."""
    for _ in range(number):
        await asyncio.sleep(0)


async def until(
    seen: Callable[[], bool], what: str, *, within_seconds: float = GENEROUS_SECONDS
) -> None:
    """Turn the loop until it is so."""
    give_up = time.monotonic() + within_seconds
    while not seen():
        assert time.monotonic() < give_up, f"never: {what}"
        await asyncio.sleep(0)
