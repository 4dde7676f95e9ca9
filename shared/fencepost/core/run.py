"""One run of the worker as a value: events in, commands out. No I/O, no clock, no chance: they are passed in.

Phases of its budget: claim and send · send to an end, give back what was not begun · cancel, say the last words.
"""

from collections.abc import Callable
from typing import assert_never

from fencepost.core.budget import Budget, Timing
from fencepost.core.conversation import Conversation, Mood
from fencepost.core.deliveries import Deliveries
from fencepost.core.exchange import Exchanged, Failure
from fencepost.core.fact import ChannelSkipped, ExchangeTrouble, Fact
from fencepost.core.gates import Gates
from fencepost.core.hearing import facts_of
from fencepost.core.inflight import Inflight
from fencepost.core.isolation import Isolation
from fencepost.core.notification import ChannelId, RunId
from fencepost.core.renewals import Renewals
from fencepost.core.rhythm import Rhythm
from fencepost.core.step import (
    Answered,
    Asked,
    Cancel,
    Command,
    Event,
    Finish,
    Replied,
    Report,
    Say,
    Started,
    Tick,
    Unanswered,
)
from fencepost.core.words import Words

HOPELESS_FAILURES = 3  # exchanges in a row that failed, when nothing would be lost by ending now


class Run:
    """The worker. `hard_end` is the monotonic instant the invocation dies; `roll` gives numbers in [0, 1)."""

    def __init__(
        self,
        *,
        run: RunId,
        timing: Timing,
        hard_end: float,
        now: float,
        roll: Callable[[], float],
    ) -> None:
        self._now = now
        self._roll = roll
        self._budget = Budget(timing=timing, hard_end=hard_end)
        self._gates = Gates()
        self._inflight = Inflight()
        self._words = Words()
        self._talk = Conversation()
        self._isolation = Isolation()
        self._out: list[Command] = []
        self._started = False
        self._finished = False
        self._ended = False  # the last exchange was answered
        self._refused = False  # an exchange was refused for good: no claim after it
        self._deliveries = Deliveries(
            budget=self._budget,
            gates=self._gates,
            inflight=self._inflight,
            words=self._words,
            roll=roll,
            out=self._out,
        )
        self._renewals = Renewals(self._budget, self._inflight)
        self._rhythm = Rhythm(
            run=run,
            budget=self._budget,
            gates=self._gates,
            deliveries=self._deliveries,
            talk=self._talk,
            isolation=self._isolation,
            renewals=self._renewals,
        )

    def step(self, event: Event, now: float) -> list[Command]:
        """Take one event at one instant; what is to be done now, in this order. After `Finish`: nothing."""
        self._now = now
        if self._finished:
            return []
        self._take(event, now)
        self._keep_phase(now)
        self._deliveries.begin_waiting(now)
        self._speak(now)
        self._finish_if_over(event, now)
        commands = self._out.copy()
        self._out.clear()
        return commands

    def wake_at(self) -> float | None:
        """The next instant at which a `Tick` would change something; None: nothing would, any more."""
        if self._finished:
            return None
        if self._now >= self._budget.finish_by:
            return self._now  # only a tick ends it
        instants = (
            self._budget.stop_claiming,
            self._budget.hard_stop,
            self._budget.finish_by,
            *(() if self._talk.under_way else self._rhythm.instants(self._now)),
        )
        return min((at for at in instants if at > self._now), default=self._now)

    # --- events

    def _take(self, event: Event, now: float) -> None:
        match event:
            case Started():
                self._start(event, now)
            case Answered(answer=answer):
                self._hear(answer, now)
            case Unanswered(failure=failure, detail=detail):
                self._miss(failure, detail, now)
            case Replied():
                self._deliveries.replied(event, now)
            case Asked():
                self._deliveries.asked(event, now)
            case Tick():
                pass
            case _:
                assert_never(event)

    def _start(self, event: Started, now: float) -> None:
        """Gates for the channels this run can send on; the others are reported, and left to other runs."""
        usable = {}
        for channel in event.channels:
            if (why := event.unavailable.get(channel.id)) is not None:
                self._report(ChannelSkipped(channel=channel.id, reason=why))
            else:
                usable[channel.id] = (channel, event.facilities[channel.id])
        self._gates.start(usable, now, event.origins)
        self._rhythm.begin(now)
        self._started = True

    def _hear(self, answer: Exchanged, now: float) -> None:
        """The order matters: what was settled is ours no more, what was lost is stopped, then new rows come."""
        said_at = self._talk.said_at
        exchange = self._talk.answered()
        self._out.extend(Report(fact) for fact in facts_of(exchange, answer, self._words))
        for word in exchange.settle:
            self._words.heard(word.held)
        self._isolation.passed()
        self._blame("the database refuses its claim")
        self._renewals.heard(exchange, answer.lost, said_at)
        self._deliveries.lost(answer.lost)
        self._gates.heard(exchange, answer, now)
        self._deliveries.receive(answer.claimed, said_at, now)
        self._rhythm.ended(now)
        self._ended = exchange.last

    def _miss(self, failure: Failure, detail: str, now: float) -> None:
        exchange = self._talk.unanswered(failure, now, self._roll())
        self._refused |= failure is Failure.REFUSED
        self._report(
            ExchangeTrouble(failure=failure, detail=detail, consecutive=self._talk.failures)
        )
        if failure is Failure.DATA:
            for parked in self._isolation.refused(exchange, self._words, detail):
                self._report(parked)
            self._blame(detail)
        if self._talk.repeat is None:
            self._gates.unheard(exchange, now)

    def _blame(self, why: str) -> None:
        """What the isolation found guilty beside settle words is not said again in this run."""
        if channels := self._isolation.take_guilty_channels():
            skipped = self._gates.blame(channels, why)
            if skipped is not None:
                self._report(ChannelSkipped(channel=ChannelId(skipped), reason=why))
        if self._isolation.take_guilty_rest():
            self._renewals.forget()
            self._gates.forget_words()

    # --- phases

    def _keep_phase(self, now: float) -> None:
        if now >= self._budget.stop_claiming:
            self._deliveries.release_waiting()
        if now >= self._budget.hard_stop:
            self._deliveries.cancel_all()

    def _speak(self, now: float) -> None:
        if now >= self._budget.finish_by or self._ended:
            return
        if self._started and self._talk.under_way is None:
            exchange = self._rhythm.exchange(now, ending=self._is_ending(now))
            if exchange is not None:
                self._talk.said(exchange, now)
                self._gates.said(exchange)
                self._out.append(Say(exchange))

    def _is_ending(self, now: float) -> bool:
        """Whether the next words, once nothing is in flight, are the last."""
        over = not self._budget.may_claim(now) or self._talk.mood is Mood.REFUSED
        return not len(self._inflight) and (over or self._drained(now))

    def _drained(self, now: float) -> bool:
        quiet = self._talk.mood is Mood.FINE and not len(self._words) and not self._gates.words(now)
        return quiet and self._gates.drained(self._budget.stop_claiming)

    def _finish_if_over(self, event: Event, now: float) -> None:
        out_of_time = now >= self._budget.finish_by and not self._may_land(event)
        if self._ended or out_of_time or self._is_hopeless(now):
            self._finished = True
            self._out.append(Finish(self._words.unsaid(), refused=self._refused))

    def _may_land(self, event: Event) -> bool:
        """Out of time, what still comes back is taken along: until a tick finds nothing to stop."""
        stopping = any(isinstance(command, Cancel) for command in self._out)
        return bool(len(self._inflight)) and (stopping or not isinstance(event, Tick))

    def _is_hopeless(self, now: float) -> bool:
        """The database does not answer, and there is nothing left that it must hear from us."""
        if self._talk.under_way is not None or self._talk.claim_unheard:
            return False
        if len(self._words) or len(self._inflight) or self._talk.mood is Mood.FINE:
            return False
        refused = self._talk.mood is Mood.REFUSED
        return refused or (
            self._talk.failures >= HOPELESS_FAILURES and not self._budget.may_claim(now)
        )

    def _report(self, fact: Fact) -> None:
        self._out.append(Report(fact))
