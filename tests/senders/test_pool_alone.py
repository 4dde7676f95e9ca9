"""The pool's own promises, at the instants a socket cannot hit: with connections that are none."""

import asyncio

from fencepost.senders.pool import Pool
from fencepost.senders.request import Origin
from fencepost.senders.wire import Wire
from tests.senders.wires import FakeWire

ORIGIN = Origin(scheme="https", host="a.test", port=443)
OTHER = Origin(scheme="https", host="b.test", port=443)


def pool_of(*wires: FakeWire, connections_max: int = 1) -> Pool:
    left = list(wires)

    async def dial(origin: Origin) -> Wire:
        wire = left.pop(0)
        wire.origin = origin
        return wire

    return Pool(dial, connections_max=connections_max, idle_seconds_max=30.0, clock=lambda: 0.0)


async def test_a_turn_called_just_as_its_waiter_is_cancelled_goes_to_the_next() -> None:
    pool = pool_of(FakeWire())
    wire = await pool.acquire(ORIGIN)
    second = asyncio.ensure_future(pool.acquire(ORIGIN))
    third = asyncio.ensure_future(pool.acquire(ORIGIN))
    await asyncio.sleep(0)
    pool.release(wire)  # calls the second …
    second.cancel()  # … which will never come
    assert await asyncio.wait_for(third, 60) is wire
    assert second.cancelled()


async def test_a_waiter_of_another_host_is_called_when_a_connection_dies() -> None:
    dying, fresh = FakeWire(), FakeWire()
    pool = pool_of(dying, fresh)
    wire = await pool.acquire(ORIGIN)
    waiting = asyncio.ensure_future(pool.acquire(OTHER))
    await asyncio.sleep(0)
    assert not waiting.done()
    dying.retire()
    pool.release(wire)
    assert await asyncio.wait_for(waiting, 60) is fresh
    assert dying.closed


async def test_a_connection_with_room_is_filled_before_another_is_dialled() -> None:
    wide = FakeWire(room=3)
    pool = pool_of(wide, connections_max=9)
    taken = await asyncio.gather(*(pool.acquire(ORIGIN) for _ in range(3)))
    assert taken == [wide, wide, wide]
    assert wide.in_flight == 3


async def test_a_server_that_lowers_its_limit_gets_no_more_than_it_allows() -> None:
    wide, second = FakeWire(room=3), FakeWire()
    pool = pool_of(wide, second, connections_max=9)
    assert await pool.acquire(ORIGIN) is wide
    wide.room = 1
    assert await pool.acquire(ORIGIN) is second


async def test_a_retired_connection_lives_until_its_last_exchange_ends() -> None:
    wide = FakeWire(room=3)
    pool = pool_of(wide, FakeWire(), connections_max=9)
    await pool.acquire(ORIGIN)
    await pool.acquire(ORIGIN)
    wide.retire()
    pool.release(wide)
    assert not wide.aborted
    pool.release(wide)
    assert wide.aborted


async def test_closing_lets_nobody_wait_for_ever() -> None:
    pool = pool_of(FakeWire())
    await pool.acquire(ORIGIN)
    waiting = asyncio.ensure_future(pool.acquire(ORIGIN))
    await asyncio.sleep(0)
    await pool.close()
    await asyncio.wait({waiting})
    assert "closed" in str(waiting.exception())
