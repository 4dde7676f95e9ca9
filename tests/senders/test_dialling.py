"""Everything that can fail before the first byte, and what may not be called at all: always `not_sent`."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import trustme

from fencepost.core.reply import Phase
from fencepost.senders import dial
from fencepost.senders.dial import Endpoint, SystemResolver
from fencepost.senders.request import read_url
from fencepost.senders.trouble import Trouble, Unsent
from tests.senders.peers import H1Peer, Peer, Server
from tests.senders.stage import (
    HOST,
    answers,
    loopback,
    never,
    server_context,
    stage,
)

SHORT_SECONDS = 0.3
GENEROUS_OVERSHOOT_SECONDS = 30.0


@contextmanager
def black_hole() -> Iterator[Endpoint]:
    """A listener whose queue is full: its system drops every further SYN."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address = listener.getsockname()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        assert filler.connect_ex(address) in (0, errno.EINPROGRESS)
    try:
        yield loopback(address[1])
    finally:
        for each in (listener, *fillers):
            each.close()


def refused_port() -> Endpoint:
    """A port that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return loopback(unused.getsockname()[1])


async def test_a_black_hole_is_not_sent_at_the_deadline() -> None:
    """D24."""
    with black_hole() as hole:
        async with stage() as on:
            on.endpoints = [hole]
            reply = await on.send(timeout_seconds=SHORT_SECONDS)
            assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
            assert reply.took_seconds < SHORT_SECONDS + GENEROUS_OVERSHOOT_SECONDS


async def test_a_black_hole_leaves_time_for_the_next_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dial, "CONNECT_SECONDS", 0.1)
    with black_hole() as hole:
        async with stage() as on:
            server = await on.serve(answers)
            on.endpoints = [hole, loopback(server.port)]
            assert (await on.send()).phase is Phase.ANSWERED


async def test_a_refused_connection_is_not_sent() -> None:
    async with stage() as on:
        on.endpoints = [refused_port()]
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.CONNECT)
        assert reply.error == f"ConnectionRefusedError {errno.ECONNREFUSED}"


async def test_a_refused_address_is_passed_over_for_the_next() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        on.endpoints = [refused_port(), loopback(server.port)]
        assert (await on.send()).phase is Phase.ANSWERED


async def test_a_peer_that_is_mute_in_tls_is_not_sent_at_the_deadline() -> None:
    async def mute(peer: Peer) -> None:
        await never()

    async with stage() as on:
        await on.serve(mute, protocol="plain")
        on.scheme = "https"
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
        assert reply.took_seconds < SHORT_SECONDS + GENEROUS_OVERSHOOT_SECONDS


@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_a_peer_that_leaves_in_tls_is_not_sent(end: str) -> None:
    async def leaves(peer: Peer) -> None:
        getattr(peer, end)()

    async with stage() as on:
        await on.serve(leaves, protocol="plain")
        on.scheme = "https"
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TLS)


async def test_a_peer_that_speaks_before_tls_is_not_sent() -> None:
    async def greets(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        await peer.write(b"220 mail.test ESMTP\r\n")
        await never()

    async with stage() as on:
        await on.serve(greets, protocol="plain")
        on.scheme = "https"
        for _ in range(5):
            reply = await on.send()
            assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TLS)


@pytest.mark.parametrize("foreign", ["another name", "another authority"])
async def test_a_certificate_that_does_not_fit_is_not_sent_and_names_nobody(foreign: str) -> None:
    async with stage() as on:
        authority = trustme.CA()
        context = server_context()
        if foreign == "another authority":
            authority.issue_cert(HOST).configure_cert(context)
        server = Server(answers, context)
        await server.start()
        on.servers.append(server)
        on.endpoints = [loopback(server.port)]
        host = HOST if foreign == "another authority" else "other.test"
        reply = await on.transport.send(on.request(host=host), timeout_seconds=10)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TLS)
        assert host not in reply.error
        assert server.log.requests == []


async def test_an_old_tls_is_refused() -> None:
    assert dial.tls_context().minimum_version >= ssl.TLSVersion.TLSv1_2
    assert dial.tls_context().verify_mode is ssl.CERT_REQUIRED
    assert dial.tls_context().check_hostname


async def test_h2_settings_that_never_come_are_not_sent() -> None:
    async with stage() as on:
        server = await on.serve_raw_h2(never)
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
        assert server.log.connections == 1


async def test_a_peer_that_leaves_instead_of_h2_settings_is_not_sent() -> None:
    async def leave() -> None: ...

    async with stage() as on:
        await on.serve_raw_h2(leave)
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.HANDSHAKE)


async def test_no_time_at_all_is_not_sent() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        for timeout_seconds in (0.0, -1.0):
            reply = await on.send(timeout_seconds=timeout_seconds)
            assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
        assert server.log.requests == []
        await on.send()  # nor on a connection that is there already
        reply = await on.send(timeout_seconds=0.0)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
        assert len(server.log.requests) == 1


# --- addresses (D54) ---

PUBLIC = Endpoint(socket.AF_INET, ("203.0.114.7", 443))


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.5", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0"],
)
async def test_a_private_address_is_never_dialled(address: str) -> None:
    async with stage() as on:
        server = await on.serve(answers)
        on.private_allowed = False
        on.endpoints = [Endpoint(socket.AF_INET, (address, server.port))]
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.ADDRESS_FORBIDDEN)
        assert server.log.connections == 0
        assert address not in reply.error


@pytest.mark.parametrize("address", ["::1", "::ffff:127.0.0.1", "fe80::1%1", "fd00::1", "::"])
async def test_a_private_address_in_ipv6_notation_is_never_dialled(address: str) -> None:
    async with stage() as on:
        on.private_allowed = False
        on.endpoints = [Endpoint(socket.AF_INET6, (address, 443, 0, 0))]
        assert (await on.send()).reason == Trouble.ADDRESS_FORBIDDEN


@pytest.mark.parametrize("public_first", [True, False])
async def test_one_private_address_among_public_ones_forbids_them_all(public_first: bool) -> None:
    async with stage() as on:
        server = await on.serve(answers)
        on.private_allowed = False
        on.endpoints = [loopback(server.port), PUBLIC]
        if public_first:
            on.endpoints.reverse()
        assert (await on.send()).reason == Trouble.ADDRESS_FORBIDDEN
        assert server.log.connections == 0


async def test_a_name_that_changes_its_mind_is_asked_once_and_vetted_each_time() -> None:
    """DNS rebinding: what was vetted is what is dialled, and the next dial vets again."""
    async with stage() as on:
        server = await on.serve(answers)
        on.private_allowed = True
        assert (await on.send()).phase is Phase.ANSWERED  # hook.test exists in no resolver
        assert (on.asked_resolver, server.log.connections) == (1, 1)
        on.private_allowed = False
        assert (await on.send()).reason == Trouble.ADDRESS_FORBIDDEN
        assert (on.asked_resolver, server.log.connections) == (2, 1)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"],
)
async def test_the_system_resolver_hides_no_private_address(host: str) -> None:
    """Whatever getaddrinfo makes of odd notations is what is judged."""
    async with stage() as on:
        server = await on.serve(answers, protocol="plain")
        transport = on.new_transport(resolve=None)
        origin, _ = read_url(f"http://{host}:{server.port}/")
        request = on.request()
        reply = await transport.send(
            type(request)(origin=origin, target="/", headers=(), body=b""), timeout_seconds=10
        )
        await transport.close()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.ADDRESS_FORBIDDEN)
        assert server.log.connections == 0


# --- names ---


@pytest.mark.parametrize(
    ("failure", "trouble"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such host"), Trouble.UNKNOWN_NAME),
        (socket.gaierror(socket.EAI_NODATA, "no address"), Trouble.UNKNOWN_NAME),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), Trouble.NAME_LOOKUP),
        (socket.gaierror(socket.EAI_FAIL, "failed"), Trouble.NAME_LOOKUP),
        (OSError(errno.EMFILE, "too many files"), Trouble.NAME_LOOKUP),
        (UnicodeError("label too long"), Trouble.NAME_LOOKUP),
    ],
)
async def test_a_failed_look_up_is_not_sent_and_names_nobody(
    failure: Exception, trouble: Trouble
) -> None:
    def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
        raise failure

    with ThreadPoolExecutor(1) as threads:
        resolver = SystemResolver(threads, getaddrinfo)
        async with stage() as on:
            on.transport = on.new_transport(resolve=resolver)
            reply = await on.send()
    assert (reply.phase, reply.reason) == (Phase.NOT_SENT, trouble)
    assert HOST not in reply.error


async def test_an_empty_answer_is_not_sent() -> None:
    async with stage() as on:
        assert (await on.send()).reason == Trouble.NAME_LOOKUP


async def test_a_stuck_look_up_is_not_sent_at_the_deadline() -> None:
    async with stage() as on:
        on.resolver_stuck = asyncio.Event()
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)


async def test_doubled_answers_are_dialled_once() -> None:
    def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, type, 6, "", ("127.0.0.1", port))] * 3

    with ThreadPoolExecutor(1) as threads:
        found = await SystemResolver(threads, getaddrinfo)("a.test", 443)
    assert found == [Endpoint(socket.AF_INET, ("127.0.0.1", 443))]


async def test_trouble_before_the_first_byte_says_what_it_is() -> None:
    assert str(Unsent(Trouble.CONNECT, "why")) == "connect: why"
