"""A runtime that thaws finds overdue timers and waiting answers in one turn of its loop: the answers count (G8)."""

import asyncio

import pytest

from fencepost.core.reply import Phase
from tests.senders.peers import Peer
from tests.senders.stage import never, stage

TIMEOUT_SECONDS = 1.0  # twenty requests must have come by then, on any machine


def stand_still(seconds: float) -> None:
    """Nothing of this loop turns until so much of its time has passed."""
    loop = asyncio.get_running_loop()
    thaw_at = loop.time() + seconds
    while loop.time() <= thaw_at:
        pass


@pytest.mark.parametrize("protocol", ["plain", "h1", "h2"])
@pytest.mark.parametrize("in_flight", [1, 20])
async def test_an_answer_that_lay_in_the_socket_is_not_timed_out(
    protocol: str, in_flight: int
) -> None:
    answered = 0

    async def answers_then_stalls(peer: Peer) -> None:
        nonlocal answered
        while True:
            await peer.answer(await peer.request())
            answered += 1
            if answered == 2 * in_flight:
                stand_still(TIMEOUT_SECONDS)

    async with stage() as on:
        await on.serve(answers_then_stalls, protocol=protocol)
        await asyncio.gather(*(on.send() for _ in range(in_flight)))  # no handshake is in the way
        sends = (on.send(timeout_seconds=TIMEOUT_SECONDS) for _ in range(in_flight))
        replies = await asyncio.gather(*sends)
        said = {(reply.phase, reply.status, reply.body, reply.reason) for reply in replies}
        assert said == {(Phase.ANSWERED, 200, b"ok", "")}


@pytest.mark.parametrize("protocol", ["plain", "h1", "h2"])
async def test_a_thaw_without_an_answer_is_still_a_timeout(protocol: str) -> None:
    async def stalls(peer: Peer) -> None:
        await peer.answer(await peer.request())
        await peer.request()
        stand_still(TIMEOUT_SECONDS)
        await never()

    async with stage() as on:
        await on.serve(stalls, protocol=protocol)
        await on.send()
        reply = await on.send(timeout_seconds=TIMEOUT_SECONDS)
        assert (reply.phase, reply.reason) == (Phase.UNCERTAIN, "timeout")
