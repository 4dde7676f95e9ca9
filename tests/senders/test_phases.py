"""Faults on an open connection, and how far the request got: the transport's contract, whatever engine is under it."""

import asyncio
import gzip

import pytest

from fencepost.core.reply import Phase
from fencepost.senders.transport import BODY_BYTES_MAX
from fencepost.senders.trouble import Trouble
from tests.senders.peers import H1Peer, Peer, Script
from tests.senders.stage import answers, beat, never, stage, until

BOTH = pytest.mark.parametrize("protocol", ["h1", "h2"])
ALL = pytest.mark.parametrize("protocol", ["plain", "h1", "h2"])
SHORT_SECONDS = 1.0  # and yet enough for a handshake on a busy machine
GENEROUS_OVERSHOOT_SECONDS = 30.0


@ALL
async def test_an_answer_is_answered_and_the_connection_serves_the_next(protocol: str) -> None:
    async with stage() as on:
        server = await on.serve(answers, protocol=protocol)
        for body in (b"first", b"second"):
            reply = await on.send(body)
            assert (reply.phase, reply.status, reply.body) == (Phase.ANSWERED, 200, b"ok")
            assert (reply.reason, reply.error) == ("", "")
        assert [each.body for each in server.log.requests] == [b"first", b"second"]
        assert server.log.connections == 1


@ALL
async def test_what_arrives_is_what_was_asked(protocol: str) -> None:
    async with stage() as on:
        server = await on.serve(answers, protocol=protocol)
        await on.send(b"hello")
        headers = server.log.requests[0].headers
        assert headers.get(":authority", headers.get("host")) == "hook.test"
        assert (headers[":method"], headers[":path"]) == ("POST", "/hook")
        assert headers["content-type"] == "text/x"


@BOTH
async def test_repeated_response_headers_are_joined_under_lower_case_names(protocol: str) -> None:
    async def speaks(peer: Peer) -> None:
        name = "X-Seen" if isinstance(peer, H1Peer) else "x-seen"
        await peer.answer(await peer.request(), headers=((name, "a"), (name, "b")))
        await never()

    async with stage() as on:
        await on.serve(speaks, protocol=protocol)
        assert (await on.send()).headers["x-seen"] == "a, b"


@ALL
async def test_headers_that_never_come_are_uncertain_at_the_deadline(protocol: str) -> None:
    """D13, D28: one connection, one request, and it ends."""

    async def silent(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(silent, protocol=protocol)
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.TIMEOUT)
        assert (server.log.connections, len(server.log.requests)) == (1, 1)
        assert SHORT_SECONDS <= reply.took_seconds < SHORT_SECONDS + GENEROUS_OVERSHOOT_SECONDS


async def test_a_dripping_head_is_uncertain_at_the_deadline() -> None:
    async def drips(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        await peer.request()
        await peer.write(b"HTTP/1.1 200 OK\r\nx-drip: ")
        while True:
            await peer.write(b".")
            await beat()

    async with stage() as on:
        await on.serve(drips)
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.TIMEOUT)


@BOTH
async def test_a_dripping_body_is_an_answer_cut_at_the_deadline(protocol: str) -> None:
    async def drips(peer: Peer) -> None:
        asked = await peer.request()
        await peer.head(asked, 202)
        while True:
            await peer.piece(asked, b".")
            await beat()

    async with stage() as on:
        server = await on.serve(drips, protocol=protocol)
        reply = await on.send(timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.status, reply.reason) == (Phase.ANSWERED, 202, Trouble.TIMEOUT)
        assert set(reply.body) == {ord(".")}
        assert reply.took_seconds < SHORT_SECONDS + GENEROUS_OVERSHOOT_SECONDS
        await until(lambda: not server.log.handlers, "the connection is dropped")


@BOTH
@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_a_connection_lost_after_the_request_is_uncertain(protocol: str, end: str) -> None:
    async def leaves(peer: Peer) -> None:
        await peer.request()
        getattr(peer, end)()
        await never()

    async with stage() as on:
        server = await on.serve(leaves, protocol=protocol)
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.CONNECTION_LOST)
        assert (server.log.connections, len(server.log.requests)) == (1, 1)


@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_half_a_head_is_no_answer(end: str) -> None:
    async def stammers(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        await peer.request()
        await peer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
        getattr(peer, end)()
        await never()

    async with stage() as on:
        await on.serve(stammers)
        assert (await on.send()).phase is Phase.UNCERTAIN


@BOTH
@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_a_used_connection_that_dies_under_the_second_request_sends_it_once(
    protocol: str, end: str
) -> None:
    async def once(peer: Peer) -> None:
        await peer.answer(await peer.request())
        await peer.request()
        getattr(peer, end)()
        await never()

    async with stage() as on:
        server = await on.serve(once, protocol=protocol)
        assert (await on.send(b"1")).phase is Phase.ANSWERED
        assert (await on.send(b"2")).phase is Phase.UNCERTAIN
        assert [each.body for each in server.log.requests] == [b"1", b"2"]
        assert server.log.connections == 1


@BOTH
async def test_a_body_that_breaks_off_leaves_the_answer_standing(protocol: str) -> None:
    async def breaks(peer: Peer) -> None:
        asked = await peer.request()
        await peer.head(asked, 200)
        await peer.piece(asked, b"half")
        peer.fin()
        await never()

    async with stage() as on:
        await on.serve(breaks, protocol=protocol)
        reply = await on.send()
        assert (reply.phase, reply.status, reply.reason) == (Phase.ANSWERED, 200, "body_lost")
        assert reply.body == b"half"


async def test_what_is_no_http_is_uncertain() -> None:
    async def babbles(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        await peer.request()
        await peer.write(b"220 mail.test ESMTP\r\n\r\n")
        await never()

    async with stage() as on:
        await on.serve(babbles)
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.PROTOCOL)


@pytest.mark.parametrize("status", [100, 103])
async def test_an_interim_answer_is_not_the_answer(status: int) -> None:
    async def hints(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        asked = await peer.request()
        await peer.write(b"HTTP/1.1 %d Wait\r\n\r\n" % status)
        await peer.answer(asked, 201)
        await never()

    async with stage() as on:
        await on.serve(hints)
        assert (await on.send()).status == 201


async def test_an_upgrade_nobody_asked_for_ends_the_connection() -> None:
    async def upgrades(peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        await peer.request()
        await peer.write(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nraw")
        await never()

    async with stage() as on:
        server = await on.serve(upgrades)
        for _ in range(2):
            assert (await on.send()).status == 101
        assert server.log.connections == 2


@BOTH
async def test_an_early_refusal_of_a_large_upload_is_heard(protocol: str) -> None:
    async def too_large(peer: Peer) -> None:
        await peer.answer(await peer.opened(), 413)
        await never()

    async with stage() as on:
        await on.serve(too_large, protocol=protocol)
        reply = await on.send(b"x" * 8_000_000)
        assert (reply.phase, reply.status) == (Phase.ANSWERED, 413)


@ALL
async def test_a_peer_that_does_not_read_is_dropped_at_the_deadline(protocol: str) -> None:
    async def deaf(peer: Peer) -> None:
        await never()

    async with stage() as on:
        await on.serve(deaf, protocol=protocol)
        reply = await on.send(b"x" * 8_000_000, timeout_seconds=SHORT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.TIMEOUT)
        await asyncio.wait_for(on.transport.close(), GENEROUS_OVERSHOOT_SECONDS)


@BOTH
async def test_an_endless_body_is_cut_and_its_connection_dropped(protocol: str) -> None:
    """D56."""
    async with stage() as on:
        server = await on.serve(pours(()), protocol=protocol)
        reply = await on.send()
        assert (reply.phase, reply.status, reply.reason) == (Phase.ANSWERED, 200, "body_cut")
        assert len(reply.body) == BODY_BYTES_MAX
        await until(lambda: not server.log.handlers, "the connection is dropped")
        assert server.log.poured < 32_000_000  # what the kernel's buffers took, not more


@BOTH
async def test_a_packed_body_is_never_unpacked(protocol: str) -> None:
    bomb = gzip.compress(bytes(50_000_000))  # 50 MB in 50 kB
    assert len(bomb) < BODY_BYTES_MAX

    async def explodes(peer: Peer) -> None:
        await peer.answer(await peer.request(), 200, bomb, (("content-encoding", "gzip"),))
        await never()

    async with stage() as on:
        await on.serve(explodes, protocol=protocol)
        assert (await on.send()).body == bomb


@BOTH
async def test_a_body_of_just_the_cap_is_whole(protocol: str) -> None:
    async def full(peer: Peer) -> None:
        while True:
            await peer.answer(await peer.request(), 200, b"x" * BODY_BYTES_MAX)

    async with stage() as on:
        server = await on.serve(full, protocol=protocol)
        for _ in range(2):
            reply = await on.send()
            assert (len(reply.body), reply.reason) == (BODY_BYTES_MAX, "")
        assert server.log.connections == 1


@BOTH
async def test_a_redirect_is_an_answer_and_never_followed(protocol: str) -> None:
    """D54: not even to where we were already."""

    async def redirects(peer: Peer) -> None:
        while True:
            elsewhere = (("location", "http://169.254.169.254/latest/meta-data/"),)
            await peer.answer(await peer.request(), 302, b"", elsewhere)

    async with stage() as on:
        server = await on.serve(redirects, protocol=protocol)
        reply = await on.send()
        assert (reply.phase, reply.status) == (Phase.ANSWERED, 302)
        assert (len(server.log.requests), on.asked_resolver) == (1, 1)


@ALL
async def test_proxy_variables_are_not_read(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    async with stage() as on:
        await on.serve(answers, protocol=protocol)
        assert (await on.send()).phase is Phase.ANSWERED


def pours(headers: tuple[tuple[str, str], ...]) -> Script:
    async def endless(peer: Peer) -> None:
        asked = await peer.request()
        await peer.head(asked, 200, headers)
        while True:
            await peer.piece(asked, b"x" * 16_384)

    return endless
