"""The end of a run that did not get through: count what is left, decide, and send one wave of drain messages."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from fencepost.core.drain import (
    Backlog,
    Pulled,
    Reason,
    Wave,
    closed,
    count_limit,
    idle_reason,
    wave,
    wave_seconds,
)
from fencepost.core.line import Level, Line
from fencepost.core.message import drain_message
from fencepost.core.notification import RunId
from fencepost.core.tally import Summary
from fencepost.ports import Clock, StoreFailed

Send = Callable[[Sequence[str], float], Sequence[str]]  # bodies and seconds; those taken
ASK_SECONDS_MAX = 1.0  # each question
LEVELS = {
    Reason.BEHIND: Level.INFO,
    Reason.BOUNDED: Level.WARNING,
    Reason.OLD: Level.INFO,
    Reason.OFF: Level.DEBUG,
    Reason.IN_TIME: Level.DEBUG,
    Reason.QUEUE_AWAY: Level.WARNING,
    Reason.UNANSWERED: Level.WARNING,
}


class Waves(Protocol):
    """What a run asks for more runs with. Every method raises `StoreFailed` and nothing else."""

    async def backlog(self, channels: tuple[str, ...], limit: int, seconds: float) -> Backlog:
        """What a claim would find now, counted up to `limit`; of a channel with a rate no more than it lets through
        in so many seconds. Reads only. No names: all channels."""
        ...

    async def begin_wave(
        self, run: RunId, ids: Sequence[UUID], seconds: float, part: UUID | None
    ) -> bool:
        """Whether this wave may go: no other is out, or only its `part` that this run is. It stands for `seconds`
        at most."""
        ...

    async def end_wave(self, run: RunId, unsent: Sequence[UUID]) -> bool:
        """These of its messages did not leave: nobody waits for them. Where none left, the next run may try."""
        ...


class RunOver(Struct, frozen=True, kw_only=True):
    """A run that has ended. `claiming_seconds`: in which it could claim; `finish_by`: until when anything may be asked;
    `part`: the drain command it was, if it was one."""

    run: RunId
    summary: Summary
    seconds: float
    claiming_seconds: float
    finish_by: float
    part: UUID | None = None


class ScaleOut(Struct, frozen=True, kw_only=True):
    """What a worker asks for more runs with. `messages_max` 0: never."""

    store: Waves
    send: Send
    messages_max: int
    channels: tuple[str, ...]
    clock: Clock

    async def after(self, over: RunOver) -> Line:
        """At most one wave; what was decided and why, as a line of the log. Whatever fails, nothing is lost by it."""
        idle = idle_reason(over.summary, self.messages_max)
        if idle is not None:
            return _line(Wave(0, idle))
        pulled = Pulled(closed=closed(over.summary), seconds=over.claiming_seconds)
        try:
            limit = count_limit(pulled, self.messages_max)
            async with asyncio.timeout(self._left(over)):
                backlog = await self.store.backlog(self.channels, limit, pulled.seconds)
            decided = wave(backlog, pulled, self.messages_max)
            return _line(await self._begun(decided, over), backlog, pulled)
        except (StoreFailed, TimeoutError):
            return _line(Wave(0, Reason.UNANSWERED))

    async def _begun(self, decided: Wave, over: RunOver) -> Wave:
        """The marker first, then the messages: whoever dies between the two has sent none, and the marker runs out."""
        if not decided.messages:
            return decided
        said = {drain_message(id): id for id in (uuid.uuid4() for _ in range(decided.messages))}
        stands = wave_seconds(decided.messages, over.seconds)
        async with asyncio.timeout(self._left(over)):
            if not await self.store.begin_wave(over.run, [*said.values()], stands, over.part):
                return Wave(0, Reason.WAVE_OUT)
        taken = self.send([*said], max(0.0, over.finish_by - self.clock()))
        unsent = [id for body, id in said.items() if body not in taken]
        if unsent:
            await self._forget(over, unsent)
        return Wave(len(taken), decided.reason if taken else Reason.QUEUE_AWAY)

    async def _forget(self, over: RunOver, unsent: Sequence[UUID]) -> None:
        """Else they would be waited for until the marker runs out. It does, should this fail."""
        with contextlib.suppress(StoreFailed, TimeoutError):
            async with asyncio.timeout(self._left(over)):
                await self.store.end_wave(over.run, unsent)

    def _left(self, over: RunOver) -> float:
        return max(0.0, min(ASK_SECONDS_MAX, over.finish_by - self.clock()))


def _line(decided: Wave, backlog: Backlog | None = None, pulled: Pulled | None = None) -> Line:
    told: dict[str, object] = {"messages": decided.messages, "reason": decided.reason.value}
    if backlog is not None:
        told |= {"due": backlog.due, "more": backlog.more}
        told |= {"oldest_due_seconds": round(backlog.oldest_due_seconds, 1)}
    if pulled is not None:
        told |= {"closed": pulled.closed, "claiming_seconds": round(pulled.seconds, 1)}
    return Line(LEVELS.get(decided.reason, Level.INFO), "scale_out", told)
