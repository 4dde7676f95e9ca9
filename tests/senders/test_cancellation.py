"""A cancelled send tells how far it got, and leaves nothing."""

import asyncio

import pytest

from fencepost.core.reply import Phase, Reply
from fencepost.ports import SendCancelled
from fencepost.senders.trouble import Trouble
from tests.senders.peers import Peer
from tests.senders.stage import Stage, answers, never, stage, until

ALL = pytest.mark.parametrize("protocol", ["plain", "h1", "h2"])


async def caught(on: Stage) -> Reply:
    """As the engine does it: within the cancelled task."""
    try:
        return await on.send()
    except SendCancelled as stopped:
        return stopped.reply


async def test_cancelled_while_dialling_is_not_sent() -> None:
    async with stage() as on:
        on.resolver_stuck = asyncio.Event()
        sending = asyncio.ensure_future(caught(on))
        await until(lambda: on.asked_resolver == 1, "it asks the resolver")
        sending.cancel()
        reply = await sending
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.CANCELLED)


@ALL
async def test_cancelled_after_the_request_is_uncertain(protocol: str) -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(silent, protocol=protocol)
        sending = asyncio.ensure_future(caught(on))
        await until(lambda: len(server.log.requests) == 1, "the request arrived")
        sending.cancel()
        reply = await sending
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, Trouble.CANCELLED)


@ALL
async def test_cancelled_in_the_body_is_answered(protocol: str) -> None:
    async def half(peer: Peer) -> None:
        asked = await peer.request()
        await peer.head(asked, 200)
        await peer.piece(asked, b"half")
        await never()

    async with stage() as on:
        server = await on.serve(half, protocol=protocol)
        sending = asyncio.ensure_future(caught(on))
        await until(lambda: server.log.poured == 4, "half a body was written")
        for _ in range(50):
            await asyncio.sleep(0)
        sending.cancel()
        reply = await sending
        assert (reply.phase, reply.status) == (Phase.ANSWERED, 200)


async def test_whoever_does_not_catch_it_is_simply_cancelled() -> None:
    async with stage() as on:
        on.resolver_stuck = asyncio.Event()
        sending = asyncio.ensure_future(on.send())
        await until(lambda: on.asked_resolver == 1, "it asks the resolver")
        sending.cancel()
        await asyncio.wait({sending})
        assert sending.cancelled()


@ALL
async def test_fifty_cancelled_in_flight_leave_nothing_and_block_nobody(protocol: str) -> None:
    async def silent_then_good(peer: Peer) -> None:
        if good.is_set():
            await answers(peer)
        while True:
            await peer.request()

    good = asyncio.Event()
    async with stage() as on:
        server = await on.serve(silent_then_good, protocol=protocol)
        sending = [asyncio.ensure_future(caught(on)) for _ in range(50)]
        await until(lambda: len(server.log.requests) == 50, "all fifty arrived")
        for each in sending:
            each.cancel()
        replies = await asyncio.gather(*sending)
        assert {each.phase for each in replies} == {Phase.UNCERTAIN}
        await until(lambda: not server.log.handlers, "their connections are gone")
        good.set()
        assert (await on.send()).phase is Phase.ANSWERED
