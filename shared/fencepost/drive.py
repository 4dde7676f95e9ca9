"""The event loop around a run: one exchange at a time, each send on its own, a timer, and nothing left behind."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol, assert_never

from msgspec import Struct

from fencepost.attempt import ask, attempt, never_began
from fencepost.core.budget import Budget
from fencepost.core.channel import Channel, Skip
from fencepost.core.exchange import Exchange, Failure
from fencepost.core.fact import Fact
from fencepost.core.notification import ChannelId, Claimed, Held, RunId
from fencepost.core.step import (
    Answered,
    Ask,
    Asked,
    Cancel,
    Command,
    Event,
    Finish,
    Replied,
    Report,
    Say,
    Send,
    Tick,
    Unanswered,
)
from fencepost.credentials import Credentials
from fencepost.deadline import THAW_TURNS, stop
from fencepost.ports import Clock, Sender, Senders, Store, StoreFailed

PATIENCE_MIN_SECONDS = 0.05  # even at the very end an exchange gets the chance of a round trip
LANDING_TURNS = 4 * THAW_TURNS  # more than a stopped send takes to land
STRAGGLER_SECONDS = 1.0  # how long a stopped send may take to end

Landing = Replied | Asked
NoteSkips = Callable[[RunId, Sequence[Skip]], Awaitable[None]]  # raises `StoreFailed`


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a run works with. `roll` gives numbers in [0, 1); `report` takes every fact, and `know` the channels
    before any fact of them; neither fails. `note_skips` None: nobody is told what cannot be sent on."""

    store: Store
    senders: Senders
    clock: Clock
    roll: Callable[[], float]
    report: Callable[[Fact], None]
    know: Callable[[Sequence[Channel]], None] = lambda channels: None
    note_skips: NoteSkips | None = None


class Machine(Protocol):
    """A run as a value: `core.run.Run`."""

    def step(self, event: Event, now: float) -> list[Command]: ...

    def wake_at(self) -> float | None: ...


class Drive:
    """One machine's drive, used once."""

    def __init__(
        self,
        machine: Machine,
        around: Surroundings,
        senders: Mapping[ChannelId, Sender],
        budget: Budget,
    ) -> None:
        self._machine = machine
        self._around = around
        self._credentials = Credentials(around.senders, senders)
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[Finish] = self._loop.create_future()
        self._flights: dict[Held, asyncio.Task[Landing]] = {}
        self._talk: asyncio.Task[Event] | None = None
        self._winding: asyncio.Handle | None = None
        self._alarm: asyncio.Handle | None = None
        self.stragglers = 0  # sends that did not end although they were stopped

    async def to_the_end(self, first: Event) -> Finish:
        """Feed the machine until it finishes. Whatever happens, nothing of it runs on afterwards."""
        try:
            self._feed(first)
            return await self._over
        finally:
            self._over.cancel()
            self._silence()
            await self._stop_all()

    def _feed(self, event: Event | BaseException) -> None:
        """What happened goes in where it happened: nothing waits for its turn in a queue."""
        if self._over.done():
            return
        if isinstance(event, BaseException):
            self._over.set_exception(event)
            return
        with self._loudly():
            for command in self._machine.step(event, self._around.clock()):
                self._carry_out(command)
        if self._winding is None:
            self._winding = self._loop.call_soon(self._wind)  # once for all that comes in one turn

    @contextlib.contextmanager
    def _loudly(self) -> Iterator[None]:
        """A bug in a callback of the loop is only logged there: it goes to whoever waits for the run."""
        try:
            yield
        except Exception as bug:
            self._over.set_exception(bug)

    # --- the clock

    def _wind(self) -> None:
        """Set the alarm for the instant the machine names now."""
        self._winding = None
        self._silence()
        if self._over.done():
            return
        with self._loudly():
            if (wake_at := self._machine.wake_at()) is not None:
                seconds = max(0.0, wake_at - self._around.clock())
                self._alarm = self._loop.call_later(seconds, self._let_land, LANDING_TURNS)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _let_land(self, turns: int) -> None:
        """Before a tick that stops sends or ends the run: what came while the runtime stood still goes first."""
        self._alarm = None
        if self._flights and turns and self._around.clock() >= self._budget.hard_stop:
            self._alarm = self._loop.call_soon(self._let_land, turns - 1)
        else:
            self._feed(Tick())

    def _carry_out(self, command: Command) -> None:
        match command:
            case Say(exchange):
                self._say(exchange)
            case Send(claimed, timeout_seconds):
                self._send(claimed, timeout_seconds)
            case Ask(claimed, timeout_seconds):
                self._ask(claimed, timeout_seconds)
            case Cancel(held):
                if flight := self._flights.get(held):
                    stop(flight)
            case Report(fact):
                self._around.report(fact)
            case Finish():
                self._over.set_result(command)
            case _:
                assert_never(command)

    def _send(self, claimed: Claimed, seconds: float) -> None:
        self._launch(
            claimed.held,
            lambda: self._attempt(claimed, seconds),
            unbegun=lambda: never_began(claimed),
        )

    async def _attempt(self, claimed: Claimed, seconds: float) -> Replied:
        sender, clock = self._credentials[claimed.channel], self._around.clock
        replied = await attempt(sender, claimed, timeout_seconds=seconds, clock=clock)
        return await self._credentials.judge(claimed.channel, sender, replied)

    def _ask(self, claimed: Claimed, seconds: float) -> None:
        sender = self._credentials[claimed.channel]
        self._launch(
            claimed.held,
            lambda: ask(sender, claimed, timeout_seconds=seconds),
            unbegun=lambda: Asked(claimed.held, None),
        )

    def _launch(
        self,
        held: Held,
        work: Callable[[], Coroutine[Any, Any, Landing]],
        *,
        unbegun: Callable[[], Landing],
    ) -> None:
        """Let it fly. `unbegun` says what it comes to when it is stopped before its first step."""
        if held in self._flights:
            raise RuntimeError(f"{held} is in flight already")
        flight = self._flights[held] = asyncio.create_task(work())

        def landed(_: object) -> None:
            del self._flights[held]
            self._feed(unbegun() if flight.cancelled() else _end_of(flight))

        flight.add_done_callback(landed)

    def _say(self, exchange: Exchange) -> None:
        if self._talk is not None:
            raise RuntimeError("an exchange is under way already")
        talk = self._talk = asyncio.create_task(self._exchanged(exchange))

        def heard(_: object) -> None:
            self._talk = None
            if not talk.cancelled():
                self._feed(_end_of(talk))

        talk.add_done_callback(heard)

    async def _exchanged(self, exchange: Exchange) -> Event:
        try:
            async with asyncio.timeout(self._patience_seconds()):
                return Answered(await self._around.store.exchange(exchange))
        except TimeoutError:
            return Unanswered(Failure.UNKNOWN, "no answer in time")
        except StoreFailed as failed:
            return Unanswered(failed.failure, failed.detail)

    def _patience_seconds(self) -> float:
        """The last exchange leaves time to say elsewhere what it could not say."""
        left = self._budget.finish_by - self._around.clock()
        return max(PATIENCE_MIN_SECONDS, min(self._budget.timing.exchange_timeout_seconds, left))

    async def _stop_all(self) -> None:
        """After `Finish` there is nothing to stop; after a bug or an interrupt there may be."""
        running = [*self._flights.values(), *([self._talk] if self._talk else [])]
        for one in running:
            one.cancel()
        if running:
            _, pending = await asyncio.wait(running, timeout=STRAGGLER_SECONDS)
            self.stragglers = len(pending)


def _end_of(done: asyncio.Task[Landing] | asyncio.Task[Event]) -> Event | BaseException:
    """A bug of ours ends the run loudly: it travels as an event and is raised where events are read."""
    return done.exception() or done.result()
