"""One run against the real world: the first question, the run itself (`drive.py`), the last word.

It decides nothing about rows. It owns time and failure around the run.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from fencepost.attempt import guarded, place_of
from fencepost.core.budget import Budget
from fencepost.core.channel import Channel, Skip
from fencepost.core.exchange import Failure, RunStart, RunStarted
from fencepost.core.fact import DatabaseRedialled, DatabaseUnsafe
from fencepost.core.notification import ChannelId, RunId
from fencepost.core.run import Run
from fencepost.core.step import Finish, Started, Unsaid
from fencepost.core.tally import Ending
from fencepost.drive import Drive, Surroundings
from fencepost.ports import NamesHosts, Sender, SenderUnavailable, StoreFailed

OPENING_TRIES = 3  # a connection that died in a freeze is dialled anew before anything is claimed
OPENING_PAUSE_SECONDS = 0.1

Result = TypeVar("Result")


class Ended(Struct, frozen=True, kw_only=True):
    """How a run ended. `stragglers`: sends that would not stop; their event loop must not run again."""

    how: Ending
    unsaid: tuple[Unsaid, ...] = ()
    stragglers: int = 0


async def run_once(around: Surroundings, *, start: RunStart, budget: Budget) -> Ended:
    """One pass over what is due. Raises `StoreFailed`, but only before anything was claimed."""
    if not budget.may_claim(around.clock()):
        return Ended(how=Ending.NO_TIME)
    await around.senders.wake()
    opening = Opening(around, budget)
    if not await opening.has_work(start.channels):
        return Ended(how=Ending.IDLE)
    started, senders = await opening.start(start)
    drive = Drive(_machine(around, start, budget), around, senders, budget)
    finish = await drive.to_the_end(started)
    how = ending(finish, budget, around.clock())
    return Ended(how=how, unsaid=finish.unsaid, stragglers=drive.stragglers)


def _machine(around: Surroundings, start: RunStart, budget: Budget) -> Run:
    return Run(
        run=start.run,
        timing=budget.timing,
        hard_end=budget.hard_end,
        now=around.clock(),
        roll=around.roll,
    )


def ending(finish: Finish, budget: Budget, now: float) -> Ending:
    """A run that ends while it could and was allowed to claim ended because nothing more was due."""
    if finish.unsaid:
        return Ending.UNSAID
    if finish.refused:
        return Ending.REFUSED
    return Ending.DRAINED if budget.may_claim(now) else Ending.DEADLINE


class Opening:
    """The words before the first claim. Each may be said again, so a broken connection costs nothing but time."""

    def __init__(self, around: Surroundings, budget: Budget) -> None:
        self._around = around
        self._budget = budget

    async def has_work(self, channels: tuple[str, ...]) -> bool:
        return await self._insist(lambda: self._look(channels))

    async def _look(self, channels: tuple[str, ...]) -> bool:
        await self._around.store.wake()
        return await self._around.store.has_work(channels)

    async def start(self, start: RunStart) -> tuple[Started, dict[ChannelId, Sender]]:
        """Create the run, and find the sender of each channel. A channel without one waits for another run."""
        started = await self._insist(lambda: self._around.store.start_run(start))
        self._around.know(started.channels)
        self._tell(started)
        senders: dict[ChannelId, Sender] = {}
        unavailable: dict[ChannelId, str] = {}
        for channel in started.channels:
            found = await guarded(self._sender(channel), lambda bug: place_of(bug))
            match found:
                case str() as why:
                    unavailable[channel.id] = why
                case sender:
                    senders[channel.id] = sender
        await self._note_skips(start.run, started.channels, unavailable)
        facilities = {channel: sender.facility for channel, sender in senders.items()}
        origins = {
            channel: sender.origin_of
            for channel, sender in senders.items()
            if isinstance(sender, NamesHosts)
        }
        return Started(started.channels, facilities, unavailable, origins), senders

    async def _note_skips(
        self, run: RunId, channels: Sequence[Channel], unavailable: Mapping[ChannelId, str]
    ) -> None:
        """Only what changed is written down, for `status` and `explain`; where that fails the next run does it."""
        changed = tuple(
            Skip(channel.id, channel.revision, unavailable.get(channel.id))
            for channel in channels
            if unavailable.get(channel.id) != channel.skipped
        )
        if changed and self._around.note_skips is not None:
            with contextlib.suppress(StoreFailed):
                await self._around.note_skips(run, changed)

    def _tell(self, started: RunStarted) -> None:
        if started.redialled is not None:
            self._around.report(DatabaseRedialled(reason=started.redialled))
        if started.unsafe is not None:
            self._around.report(DatabaseUnsafe(reason=started.unsafe))

    async def _sender(self, channel: Channel) -> Sender | str:
        try:
            return self._around.senders.sender(channel)
        except SenderUnavailable as why:
            return str(why)

    async def _insist(self, say: Callable[[], Awaitable[Result]]) -> Result:
        """Say it until it is answered: a few times, and not where the answer would be no again."""
        for tries_left in reversed(range(OPENING_TRIES)):
            try:
                async with asyncio.timeout(self._patience_seconds()):
                    return await say()
            except TimeoutError:
                failed = StoreFailed(Failure.UNKNOWN, "the database did not answer in time")
            except StoreFailed as error:
                failed = error
            if not tries_left or failed.failure in (Failure.REFUSED, Failure.DATA):
                raise failed
            await asyncio.sleep(self._pause_seconds(tries_left))
        raise AssertionError("unreachable: the last try returns or raises")

    def _pause_seconds(self, tries_left: int) -> float:
        """Longer each time, and another for each run: many that found no free slot must not come back together."""
        doubled = OPENING_PAUSE_SECONDS * 2.0 ** (OPENING_TRIES - 1 - tries_left)
        return doubled * (0.5 + 0.5 * self._around.roll())

    def _patience_seconds(self) -> float:
        left = self._budget.hard_stop - self._around.clock()
        return min(self._budget.timing.exchange_timeout_seconds, left)
