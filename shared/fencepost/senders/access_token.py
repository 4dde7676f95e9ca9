"""An access token that lasts a while: fetched by the first who needs it, kept until shortly before its end, dropped
when it is refused. Whatever becomes of a fetch, nothing of any message has left."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fencepost.core.reply import Phase, Reply
from fencepost.deadline import Deadline
from fencepost.ports import SendCancelled
from fencepost.senders.trouble import Trouble

RENEWED_SECONDS = 300.0  # before its end


@dataclass(frozen=True, slots=True)
class Granted:
    """A fresh token and how long it lasts."""

    token: str = field(repr=False)
    seconds: float


@dataclass(slots=True, eq=False)
class Lent:
    """A token as one send uses it. `suspect`: fetched because the one before was refused."""

    token: str = field(repr=False)
    until: float
    suspect: bool


# Asks for a token within so many seconds; a reply says why there is none. Raises `SendCancelled` when it is stopped.
Fetch = Callable[[float], Awaitable[Granted | Reply]]


class AccessToken:
    """One of a sender. `now` is wall time in unix seconds: a token ages while a sandbox is frozen."""

    def __init__(self, fetch: Fetch, *, now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._lent: Lent | None = None
        self._refused = False
        self._fetching: asyncio.Future[Lent | Reply | None] | None = None

    async def lend(self, *, timeout_seconds: float) -> Lent | Reply:
        """The token, or the reply of a send that never began. Those who come while it is fetched share what comes."""
        if self._lent is not None and self._now() < self._lent.until:
            return self._lent
        when = asyncio.get_running_loop().time() + timeout_seconds
        try:
            return await self._shared(when)
        except TimeoutError:
            return unsent(Trouble.TIMEOUT, "no access token came in time")
        except asyncio.CancelledError:
            stopped = unsent(Trouble.CANCELLED, "stopped before an access token was there")
            raise SendCancelled(stopped) from None

    def refused(self, lent: Lent) -> bool:
        """It was refused. Whether another may be better: not where this one was already new."""
        if lent is self._lent:
            self._lent, self._refused = None, True
        return not lent.suspect

    def accepted(self, lent: Lent) -> None:
        """It was good for an answer of any other kind."""
        if lent.suspect:
            lent.suspect = self._refused = False

    async def _shared(self, when: float) -> Lent | Reply:
        loop = asyncio.get_running_loop()
        while self._fetching is not None:
            async with Deadline(when, asked=lambda: False):
                told = await asyncio.shield(self._fetching)
            if told is not None:  # else whoever fetched was stopped: the next one does
                return told
        self._fetching = loop.create_future()
        told = None
        try:
            told = await self._fetched(when - loop.time())
            return told
        finally:
            fetching, self._fetching = self._fetching, None
            fetching.set_result(told)

    async def _fetched(self, timeout_seconds: float) -> Lent | Reply:
        began = self._now()
        granted = await self._fetch(timeout_seconds)
        if isinstance(granted, Reply):
            return granted
        life = max(granted.seconds - RENEWED_SECONDS, granted.seconds / 2)
        self._lent = Lent(granted.token, until=began + life, suspect=self._refused)
        return self._lent


def unsent(trouble: Trouble, detail: str) -> Reply:
    """Nothing of the message left."""
    return Reply(phase=Phase.NOT_SENT, reason=trouble.value, error=detail)
