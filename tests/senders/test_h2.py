"""HTTP/2's own ways to say what was processed and what was not, and many exchanges on one connection."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from fencepost.core.reply import Phase, Reply
from fencepost.senders.trouble import Trouble
from tests.senders.peers import H2Peer, Peer, Script
from tests.senders.stage import Stage, answers, never, stage, turns, until

CANCEL = 8
ENHANCE_YOUR_CALM = 11
INTERNAL_ERROR = 2


def h2_script(script: Callable[[H2Peer], Awaitable[None]]) -> Script:
    async def run(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        await script(peer)

    return run


def sends(on: Stage, count: int) -> list[asyncio.Task[Reply]]:
    return [asyncio.ensure_future(on.send(b"%d" % number)) for number in range(count)]


async def test_a_refused_stream_is_not_sent_and_its_connection_goes_on() -> None:
    async def refuses_once(peer: H2Peer) -> None:
        await peer.refuse(await peer.request())
        await answers(peer)

    async with stage() as on:
        server = await on.serve(h2_script(refuses_once), protocol="h2")
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.STREAM_REFUSED)
        assert len(server.log.requests) == 1  # once: no hidden repeat
        assert (await on.send()).phase is Phase.ANSWERED
        assert server.log.connections == 1


@pytest.mark.parametrize("error_code", [CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR])
async def test_any_other_reset_of_the_stream_is_uncertain(error_code: int) -> None:
    async def resets(peer: H2Peer) -> None:
        await peer.refuse(await peer.request(), error_code)
        await never()

    async with stage() as on:
        server = await on.serve(h2_script(resets), protocol="h2")
        assert (await on.send()).phase is Phase.UNCERTAIN
        assert len(server.log.requests) == 1


async def test_a_goaway_splits_the_streams_at_its_last_id() -> None:
    """D30, D31: 7, 9 and 11 were not processed; 1, 3 and 5 wait for their answers; the next dials anew."""

    async def leaves_after_five(peer: H2Peer) -> None:
        if peer.number > 1:
            await answers(peer)
        asked = [await peer.request() for _ in range(6)]
        await peer.go_away(5)
        await told.wait()
        for each in asked[:3]:
            await peer.answer(each)
        await never()

    told = asyncio.Event()
    async with stage() as on:
        server = await on.serve(h2_script(leaves_after_five), protocol="h2")
        first = sends(on, 6)
        refused = await asyncio.gather(*first[3:])
        assert {(each.phase, each.reason) for each in refused} == {
            (Phase.NOT_SENT, Trouble.GONE_AWAY)
        }
        assert not any(each.done() for each in first[:3])
        assert (await on.send(b"next")).phase is Phase.ANSWERED
        assert server.log.connections == 2
        told.set()
        covered = await asyncio.gather(*first[:3])
        assert {(each.phase, each.status) for each in covered} == {(Phase.ANSWERED, 200)}


@pytest.mark.parametrize("error_code", [0, INTERNAL_ERROR])
@pytest.mark.parametrize("end", ["reset", "fin"])
async def test_a_covered_stream_whose_answer_never_comes_is_uncertain(
    error_code: int, end: str
) -> None:
    async def promises(peer: H2Peer) -> None:
        asked = await peer.request()
        await peer.go_away(asked.stream, error_code)
        getattr(peer, end)()
        await never()

    async with stage() as on:
        server = await on.serve(h2_script(promises), protocol="h2")
        assert (await on.send()).phase is Phase.UNCERTAIN
        assert len(server.log.requests) == 1


async def test_a_goaway_that_covers_nothing_is_not_sent() -> None:
    async def leaves(peer: H2Peer) -> None:
        await peer.request()
        await peer.go_away(0)
        peer.fin()
        await never()

    async with stage() as on:
        await on.serve(h2_script(leaves), protocol="h2")
        reply = await on.send()
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.GONE_AWAY)


async def test_a_graceful_goaway_first_covers_all_and_then_some() -> None:
    """RFC 9113, 6.8: 2^31-1 announces the end, a second frame names the last stream."""

    async def drains(peer: H2Peer) -> None:
        one, two = await peer.request(), await peer.request()
        await peer.go_away(2**31 - 1)
        await peer.go_away(one.stream)
        await peer.answer(one)
        assert two.stream > one.stream
        await never()

    async with stage() as on:
        await on.serve(h2_script(drains), protocol="h2")
        phases = sorted(each.phase for each in await asyncio.gather(*sends(on, 2)))
        assert phases == [Phase.ANSWERED, Phase.NOT_SENT]


async def test_an_idle_connection_that_got_a_goaway_is_not_used_again() -> None:
    async def leaves_when_idle(peer: H2Peer) -> None:
        await peer.answer(await peer.request())
        if peer.number == 1:
            await peer.go_away(1)
            away.set()
        await answers(peer)

    away = asyncio.Event()
    async with stage() as on:
        server = await on.serve(h2_script(leaves_when_idle), protocol="h2")
        await on.send()
        await away.wait()
        await turns(10)
        assert (await on.send()).phase is Phase.ANSWERED
        assert server.log.connections == 2


@pytest.mark.parametrize(("streams_max", "room"), [(10, 8), (3, 2)])
async def test_a_stream_limit_is_kept_with_a_reserve_by_dialling_more(
    streams_max: int, room: int
) -> None:
    async def answers_when_all_are_there(peer: Peer) -> None:
        await everyone.wait()
        await answers(peer)

    everyone = asyncio.Event()
    async with stage() as on:
        server = await on.serve(answers_when_all_are_there, protocol="h2", streams_max=streams_max)
        sending = sends(on, 24)
        await until(lambda: len(server.log.requests) == 24, "all are in flight at once")
        carried = Counter(each.connection for each in server.log.requests)
        assert set(carried.values()) == {room}
        assert server.log.connections == 24 // room
        everyone.set()
        assert {each.phase for each in await asyncio.gather(*sending)} == {Phase.ANSWERED}


async def test_a_server_that_allows_one_stream_gets_one_connection() -> None:
    async with stage() as on:
        server = await on.serve(answers, protocol="h2", streams_max=1)
        replies = await asyncio.gather(*sends(on, 24))
        assert {each.phase for each in replies} == {Phase.ANSWERED}
        assert server.log.connections == 1


async def test_a_limit_that_is_raised_is_used_at_once() -> None:
    """As APNs: one stream until it has seen a good token."""

    async def knows_us_after_the_first(peer: H2Peer) -> None:
        asked = await peer.request()
        await peer.allow(1000)
        await peer.answer(asked)
        await everyone.wait()
        await answers(peer)

    everyone = asyncio.Event()
    async with stage() as on:
        script = h2_script(knows_us_after_the_first)
        server = await on.serve(script, protocol="h2", streams_max=1)
        sending = sends(on, 24)
        await until(lambda: len(server.log.requests) == 24, "all are in flight at once")
        everyone.set()
        assert {each.phase for each in await asyncio.gather(*sending)} == {Phase.ANSWERED}
        assert server.log.connections == 1


async def test_a_limit_that_is_lowered_makes_the_next_ones_wait() -> None:
    """As APNs after a refused token: down to one, and up again after the next good one."""

    async def frowns(peer: H2Peer) -> None:
        await peer.allow(1)
        await peer.answer(await peer.request())
        asked = await peer.request()
        frowned.set()
        await go_on.wait()
        await peer.answer(asked)
        await peer.allow(1000)
        await answers(peer)

    frowned, go_on = asyncio.Event(), asyncio.Event()
    async with stage() as on:
        server = await on.serve(h2_script(frowns), protocol="h2", streams_max=500)
        await on.send()
        sending = sends(on, 12)
        await frowned.wait()
        assert len(server.log.requests) == 2
        go_on.set()
        assert {each.phase for each in await asyncio.gather(*sending)} == {Phase.ANSWERED}
        assert server.log.connections == 1


async def test_when_a_connection_of_one_stream_falls_silent_the_next_one_dials() -> None:
    async def silent_at_first(peer: Peer) -> None:
        if peer.number == 1:
            await never()
        await answers(peer)

    async with stage() as on:
        server = await on.serve(silent_at_first, protocol="h2", streams_max=1)
        first = asyncio.ensure_future(on.send(timeout_seconds=1.5))
        await until(lambda: len(server.log.requests) == 1, "the first arrived")
        second = asyncio.ensure_future(on.send())
        assert (await first).phase is Phase.UNCERTAIN
        assert (await second).phase is Phase.ANSWERED
        assert server.log.connections == 2


async def test_a_cold_burst_dials_once_and_shares() -> None:
    async with stage() as on:
        server = await on.serve(answers, protocol="h2")
        replies = await asyncio.gather(*sends(on, 50))
        assert {each.phase for each in replies} == {Phase.ANSWERED}
        assert (server.log.connections, on.asked_resolver) == (1, 1)


async def test_streams_given_up_never_block_the_next_send() -> None:
    """The engine's defect: ten cancelled streams on a connection of ten would take all its places for good."""

    async def deaf_at_first(peer: Peer) -> None:
        if peer.number == 1:
            await never()
        await answers(peer)

    async with stage() as on:
        server = await on.serve(deaf_at_first, protocol="h2", streams_max=12)
        given_up = sends(on, 9)
        await until(lambda: len(server.log.requests) == 9, "nine requests arrived")
        for each in given_up:
            each.cancel()
        ended = await asyncio.gather(*given_up, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        await until(lambda: not server.log.handlers, "their connection is gone")
        assert (await on.send()).phase is Phase.ANSWERED
        assert server.log.connections == 2


async def test_a_timed_out_stream_retires_its_connection_and_spares_its_neighbours() -> None:
    async def forgets_the_first(peer: Peer) -> None:
        await peer.request()
        neighbour = await peer.request()
        await late.wait()
        await peer.answer(neighbour)
        await never()

    late = asyncio.Event()
    async with stage() as on:
        server = await on.serve(forgets_the_first, protocol="h2")
        first = asyncio.ensure_future(on.send(timeout_seconds=1.5))
        await until(lambda: len(server.log.requests) == 1, "the first arrived")
        neighbour = asyncio.ensure_future(on.send())
        assert (await first).phase is Phase.UNCERTAIN
        third = asyncio.ensure_future(on.send())
        await until(lambda: server.log.connections == 2, "the third went elsewhere")
        await until(lambda: server.log.stream_resets == [1], "the server heard of the first's end")
        late.set()
        assert (await neighbour).phase is Phase.ANSWERED
        third.cancel()
        await asyncio.wait({third})
