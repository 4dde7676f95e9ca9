"""Connections between sends: how many, for how long, for whom, and what a freeze does to them."""

import asyncio
import socket
import threading

import pytest

from fencepost.core.reply import Phase
from fencepost.senders.trouble import Trouble
from tests.senders.peers import Peer
from tests.senders.stage import (
    Stage,
    answers,
    loopback,
    never,
    open_files,
    server_context,
    stage,
    turns,
    until,
)

BOTH = pytest.mark.parametrize("protocol", ["h1", "h2"])


async def test_never_more_connections_than_places() -> None:
    """D34."""
    async with stage() as on:
        on.transport = on.new_transport(connections_max=20)
        server = await on.serve(answers)
        replies = await asyncio.gather(*(on.send() for _ in range(400)))
        assert {each.phase for each in replies} == {Phase.ANSWERED}
        assert len(server.log.requests) == 400
        assert server.log.connections <= 20


async def test_waiting_for_a_place_counts_and_is_not_sent() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        on.transport = on.new_transport(connections_max=1)
        server = await on.serve(silent)
        first = asyncio.ensure_future(on.send())
        await until(lambda: len(server.log.requests) == 1, "the first arrived")
        reply = await on.send(timeout_seconds=0.5)
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.TIMEOUT)
        assert (server.log.connections, len(server.log.requests)) == (1, 1)
        first.cancel()
        await asyncio.wait({first})


async def test_an_idle_connection_makes_room_for_another_host() -> None:
    async with stage() as on:
        on.transport = on.new_transport(connections_max=1)
        server = await on.serve(answers, protocol="plain")
        for host in ("a.test", "b.test", "a.test"):
            reply = await on.transport.send(on.request(host=host), timeout_seconds=10)
            assert reply.phase is Phase.ANSWERED
        assert server.log.connections == 3
        await until(lambda: len(server.log.handlers) == 1, "only one is left")


async def test_a_host_waits_for_another_hosts_connection() -> None:
    async def held(peer: Peer) -> None:
        asked = await peer.request()
        await free.wait()
        await peer.answer(asked)
        await answers(peer)

    free = asyncio.Event()
    async with stage() as on:
        on.transport = on.new_transport(connections_max=1)
        server = await on.serve(held, protocol="plain")
        ask = on.transport.send
        first = asyncio.ensure_future(ask(on.request(host="a.test"), timeout_seconds=10))
        await until(lambda: len(server.log.requests) == 1, "the first arrived")
        second = asyncio.ensure_future(ask(on.request(host="b.test"), timeout_seconds=10))
        await asyncio.sleep(0)
        free.set()
        assert {(await first).phase, (await second).phase} == {Phase.ANSWERED}
        assert server.log.connections == 2


async def test_a_connection_is_not_shared_with_a_channel_that_may_not_dial_it() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        assert (await on.send()).phase is Phase.ANSWERED
        on.private_allowed = False
        assert (await on.send()).reason == Trouble.ADDRESS_FORBIDDEN
        assert len(server.log.requests) == 1


async def test_a_dial_that_fails_fails_for_all_who_waited_for_it() -> None:
    async with stage() as on:
        on.resolver_stuck = asyncio.Event()
        sending = [asyncio.ensure_future(on.send()) for _ in range(30)]
        await until(lambda: on.asked_resolver == 1, "one asks the resolver")
        for _ in range(10):
            await asyncio.sleep(0)
        on.resolver_stuck.set()
        replies = await asyncio.gather(*sending)
        assert {(each.phase, each.reason) for each in replies} == {
            (Phase.NOT_SENT, Trouble.NAME_LOOKUP)
        }
        assert on.asked_resolver == 1


async def test_a_dialler_that_is_cancelled_leaves_the_dial_to_the_next() -> None:
    async with stage() as on:
        server = await on.serve(answers, protocol="h2")
        on.resolver_stuck = asyncio.Event()
        first = asyncio.ensure_future(on.send())
        await until(lambda: on.asked_resolver == 1, "the first asks the resolver")
        second = asyncio.ensure_future(on.send())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        on.resolver_stuck.set()
        assert (await second).phase is Phase.ANSWERED
        assert server.log.connections == 1


# --- age and freeze (D33) ---


@BOTH
@pytest.mark.parametrize(
    ("idle_seconds", "connections"), [(29.0, 1), (31.0, 2), (-5.0, 1), (-31.0, 2)]
)
async def test_age_is_judged_by_wall_clock(
    protocol: str, idle_seconds: float, connections: int
) -> None:
    """A sandbox may have been frozen: its monotonic clock says nothing. A clock set back is not trusted either."""
    async with stage() as on:
        server = await on.serve(answers, protocol=protocol)
        await on.send()
        on.clock.seconds += idle_seconds
        assert (await on.send()).phase is Phase.ANSWERED
        assert server.log.connections == connections


@BOTH
async def test_nothing_of_the_invocation_before_is_used_again(protocol: str) -> None:
    """However short it idled: it may have been frozen, and what died meanwhile would cost doubt."""
    async with stage() as on:
        server = await on.serve(answers, protocol=protocol)
        await on.send()
        kept = open_files()
        await on.transport.wake()
        await until(lambda: open_files() < kept, "the old connection is closed")
        assert (await on.send()).phase is Phase.ANSWERED
        assert server.log.connections == 2


@BOTH
@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_a_connection_closed_while_idle_is_not_used_again(protocol: str, end: str) -> None:
    async def hangs_up(peer: Peer) -> None:
        await peer.answer(await peer.request())
        if peer.number == 1:
            await enough.wait()
            getattr(peer, end)()
            return
        await answers(peer)

    enough = asyncio.Event()
    async with stage() as on:
        server = await on.serve(hangs_up, protocol=protocol)
        await on.send()
        enough.set()
        await until(lambda: not server.log.handlers, "the server hung up")
        await turns(10)
        assert (await on.send()).phase is Phase.ANSWERED
        assert len(server.log.requests) == 2


def test_a_goodbye_that_waited_through_a_freeze_is_heard_before_the_first_send() -> None:
    """The loop stands still while the server closes; `wake` gives it the turns to notice."""
    loop = asyncio.new_event_loop()
    hang_up, hung_up = threading.Event(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for number in (1, 2):
            raw, _ = listener.accept()
            with server_context(alpn=["http/1.1"]).wrap_socket(raw, server_side=True) as spoken:
                received = b""
                while not received.endswith(b'{"n":1}'):
                    received += spoken.recv(65536)
                spoken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                if number == 1:
                    assert hang_up.wait(20)
            hung_up.set()

    serving = threading.Thread(target=serve)
    serving.start()

    async def ready() -> Stage:
        return Stage()

    on = loop.run_until_complete(ready())
    on.endpoints = [loopback(listener.getsockname()[1])]
    assert loop.run_until_complete(on.send()).phase is Phase.ANSWERED
    hang_up.set()
    assert hung_up.wait(20)  # frozen: not one turn of the loop meanwhile
    loop.run_until_complete(on.transport.wake())
    assert loop.run_until_complete(on.send()).phase is Phase.ANSWERED
    loop.run_until_complete(on.transport.close())
    serving.join(120)
    listener.close()
    loop.close()


async def test_a_closed_transport_sends_nothing() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        await on.transport.close()
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.CLOSED)
        assert server.log.connections == 0
