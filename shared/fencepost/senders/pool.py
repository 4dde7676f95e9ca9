"""Connections kept by origin: who may use one, who may dial, who must wait. It opens nothing by itself but what
`dial` opens, and every wait in it is a wait before the first byte.

An h1 connection carries one exchange, an h2 connection as many as its server allows; the pool sees only `room`.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from fencepost.senders.request import Origin
from fencepost.senders.trouble import Trouble, Unsent
from fencepost.senders.wire import Wire

Turn = asyncio.Future[Unsent | None]  # None: look again; a failure: the host could not be reached


class Site(Struct):
    """One origin's connections."""

    origin: Origin
    wires: set[Wire] = field(default_factory=set)
    free: list[Wire] = field(default_factory=list)  # with room; the last used is the last
    waiting: deque[Turn] = field(default_factory=deque)  # not yet called
    dialling: int = 0
    room: float = math.inf  # of the connection dialled last; unknown before the first

    @property
    def deserted(self) -> bool:
        return not (self.wires or self.waiting or self.dialling)

    @property
    def needs_dial(self) -> bool:
        """Whether the dials under way leave nothing for one more asker: each keeps one place for its own dialler."""
        if any(wire.patient and wire.usable for wire in self.wires):
            return False
        if self.dialling == 0:
            return True
        return self.dialling * (self.room - 1) <= len(self.waiting)


class Pool:
    """`clock` is wall time in seconds: a sandbox may be frozen, and its monotonic clock with it."""

    def __init__(
        self,
        dial: Callable[[Origin], Awaitable[Wire]],
        *,
        connections_max: int,
        idle_seconds_max: float,
        clock: Callable[[], float],
    ) -> None:
        self._dial = dial
        self._connections_max = connections_max
        self._idle_seconds_max = idle_seconds_max
        self._clock = clock
        self._sites: dict[Origin, Site] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._closed = False

    async def acquire(self, origin: Origin) -> Wire:
        """A connection with a place on it, the caller's until `release`. Raises `Unsent`."""
        while not self._closed:
            site = self._sites.setdefault(origin, Site(origin))
            wire = self._free(site)
            if wire is not None:
                return wire
            self._sites[origin] = site  # forgotten, if all it had was too old
            if site.needs_dial and self._may_open():
                return await self._dialled(site)
            await self._turn(site)
        raise Unsent(Trouble.CLOSED, "the transport is closed")

    def release(self, wire: Wire) -> None:
        """Give the place back. A connection that is no longer usable goes with its last exchange."""
        site = self._sites.get(wire.origin)
        if site is None or wire not in site.wires:
            return  # dropped by `close`
        wire.in_flight -= 1
        if wire.in_flight == 0:
            wire.idle_since = self._clock()
        if not wire.usable:
            self._withdraw(site, wire)
        elif wire not in site.free:
            site.free.append(wire)
        self._wake(site)

    def drop_idle(self) -> None:
        """Drop every connection that nothing is in flight on."""
        for site in tuple(self._sites.values()):
            for wire in tuple(site.free):
                if wire.in_flight == 0:
                    self._withdraw(site, wire)

    async def close(self) -> None:
        """Drop every connection and wait until nothing of them is left."""
        self._closed = True
        for site in tuple(self._sites.values()):
            self._call_all(site, None)
            for wire in tuple(site.wires):
                self._discard(site, wire)
        while self._closing:
            await asyncio.wait(self._closing)

    # --- using what is there ---

    def _free(self, site: Site) -> Wire | None:
        while site.free:
            wire = site.free[-1]
            if not self._fresh(wire):
                self._withdraw(site, wire)
            elif wire.in_flight >= wire.room:  # full, or its server lowered the limit
                site.free.pop()
            else:
                wire.in_flight += 1
                if site.waiting and wire.in_flight < wire.room:
                    self._call(site, None)  # its server has raised the limit: one after the other
                return wire
        return None

    def _fresh(self, wire: Wire) -> bool:
        if wire.in_flight:
            return wire.usable
        # Also when the clock was set back: what cannot be dated is not trusted.
        idle = abs(self._clock() - wire.idle_since)
        return wire.usable and idle <= self._idle_seconds_max

    # --- dialling ---

    def _may_open(self) -> bool:
        opened = sum(len(site.wires) + site.dialling for site in self._sites.values())
        return opened < self._connections_max or self._evicted()

    def _evicted(self) -> bool:
        """Drop the connection that idled longest, to make room for another host's."""
        idle = [
            (wire.idle_since, index, site, wire)
            for index, site in enumerate(self._sites.values())
            for wire in site.free
            if wire.in_flight == 0
        ]
        if not idle:
            return False
        _, _, site, wire = min(idle, key=lambda each: each[:2])
        self._withdraw(site, wire)
        return True

    async def _dialled(self, site: Site) -> Wire:
        site.dialling += 1
        try:
            wire = await self._dial(site.origin)
        except Unsent as failure:
            site.dialling -= 1
            self._unreachable(site, failure)
            raise
        except BaseException:
            site.dialling -= 1
            self._wake(site)  # whoever waited for this dial dials now
            self._forget(site)
            raise
        site.dialling -= 1
        return self._admitted(site, wire)

    def _admitted(self, site: Site, wire: Wire) -> Wire:
        site.wires.add(wire)
        if self._closed:
            self._discard(site, wire)
            raise Unsent(Trouble.CLOSED, "the transport is closed")
        wire.in_flight = 1
        site.room = wire.room
        site.free.append(wire)
        self._call_all(site, None)
        return wire

    def _unreachable(self, site: Site, failure: Unsent) -> None:
        """With no other way to this host, those who waited for the dial share its failure instead of repeating it."""
        if site.wires or site.dialling:
            self._wake(site)
            return
        self._call_all(site, failure)
        self._forget(site)

    # --- waiting ---

    async def _turn(self, site: Site) -> None:
        turn: Turn = asyncio.get_running_loop().create_future()
        site.waiting.append(turn)
        self._waiting += 1
        try:
            failure = await turn
        except asyncio.CancelledError:
            if turn in site.waiting:
                site.waiting.remove(turn)
                self._waiting -= 1
                self._forget(site)
            else:
                self._wake(site)  # it was called already: its turn is somebody else's
            raise
        if failure is not None:
            raise Unsent(failure.trouble, failure.detail)

    def _wake(self, first: Site) -> None:
        """Let one look again: of this site, else of any other (a place under the cap came free)."""
        if not self._waiting:
            return
        for site in (first, *self._sites.values()):
            if site.waiting:
                self._call(site, None)
                return

    def _call(self, site: Site, failure: Unsent | None) -> None:
        self._waiting -= 1
        turn = site.waiting.popleft()
        if not turn.done():  # else it is being cancelled this very moment
            turn.set_result(failure)

    def _call_all(self, site: Site, failure: Unsent | None) -> None:
        while site.waiting:
            self._call(site, failure)

    # --- letting go ---

    def _withdraw(self, site: Site, wire: Wire) -> None:
        """Nothing new on it; dropped at once where nothing is in flight."""
        if wire in site.free:
            site.free.remove(wire)
        if wire.in_flight == 0:
            self._discard(site, wire)

    def _discard(self, site: Site, wire: Wire) -> None:
        site.wires.discard(wire)
        wire.abort()
        closing = asyncio.get_running_loop().create_task(wire.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._wake(site)
        self._forget(site)

    def _forget(self, site: Site) -> None:
        if site.deserted and self._sites.get(site.origin) is site:
            del self._sites[site.origin]
