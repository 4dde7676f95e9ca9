"""A run on the table: events by hand, commands to look at, time as a number."""

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from fencepost.core.budget import Timing
from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import (
    NO_FACTS,
    Exchange,
    Exchanged,
    Failure,
    GateAnswer,
    Verdict,
    Word,
)
from fencepost.core.fact import Fact
from fencepost.core.notification import Claimed, Held, RunId
from fencepost.core.outcome import Delivered, Outcome
from fencepost.core.run import Run
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
    Started,
    Tick,
    Unanswered,
)
from tests.core.rows import KEYED, a_channel

Kind = TypeVar("Kind", bound=Command)
OPEN = GateAnswer(revision=3, paused_for_seconds=0.0, reason=None, token_in_seconds=0.0)


class Table:
    """One run, its commands of the last step and all facts so far."""

    def __init__(
        self,
        *channels: Channel,
        facility: Facility = KEYED,
        hard_end: float = 60.0,
        timing: Timing | None = None,
        now: float = 0.0,
        start: bool = True,
    ) -> None:
        self.channels = channels or (a_channel(),)
        self.now = now
        self.run = Run(
            run=RunId(UUID(int=1)),
            timing=timing or Timing(),
            hard_end=hard_end,
            now=now,
            roll=lambda: 0.5,
        )
        self.commands: list[Command] = []
        self.facts: list[Fact] = []
        if start:
            self.feed(Started(self.channels, {channel.id: facility for channel in self.channels}))

    def feed(self, event: Event, *, after: float = 0.0) -> "Table":
        self.now += after
        self.commands = self.run.step(event, self.now)
        self.facts += [command.fact for command in self.of(Report)]
        return self

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [command for command in self.commands if isinstance(command, kind)]

    def wake(self) -> "Table":
        """Sleep until the run wants to be woken, and tick."""
        wake_at = self.run.wake_at()
        assert wake_at is not None
        return self.feed(Tick(), after=wake_at - self.now)

    def until_said(self) -> Exchange:
        """Tick until it speaks."""
        for _ in range(20):
            if says := self.of(Say):
                return says[0].exchange
            self.wake()
        raise AssertionError("the run says nothing")

    @property
    def said(self) -> Exchange:
        (say,) = self.of(Say)
        return say.exchange

    @property
    def sent(self) -> list[Held]:
        return [send.claimed.held for send in self.of(Send)]

    @property
    def asked(self) -> list[Held]:
        return [ask.claimed.held for ask in self.of(Ask)]

    @property
    def cancelled(self) -> list[Held]:
        return [cancel.held for cancel in self.of(Cancel)]

    @property
    def finished(self) -> Finish | None:
        finishes = self.of(Finish)
        return finishes[0] if finishes else None

    def answer(
        self,
        *claimed: Claimed,
        verdicts: Iterable[Verdict] | None = None,
        lost: tuple[Held, ...] = (),
        gate: GateAnswer | None = OPEN,
        after: float = 0.01,
    ) -> "Table":
        """The exchange just said is answered: everything applied unless told otherwise."""
        exchange = self.last_said
        told = tuple(verdicts) if verdicts is not None else ()
        return self.feed(
            Answered(
                Exchanged(
                    verdicts=told or (Verdict.APPLIED,) * len(exchange.settle),
                    lost=lost,
                    gates={c.id: gate for c in self.channels} if gate else {},
                    claimed=claimed,
                )
            ),
            after=after,
        )

    @property
    def last_said(self) -> Exchange:
        under_way = self.run._talk.under_way
        assert under_way is not None
        return under_way

    def fail(self, failure: Failure, *, after: float = 0.01) -> "Table":
        return self.feed(Unanswered(failure, failure.value), after=after)

    def reply(self, held: Held, outcome: Outcome | None = None, *, after: float = 0.1) -> "Table":
        return self.feed(Replied(held, outcome or Delivered(), NO_FACTS), after=after)

    def ask_answered(self, held: Held, outcome: Outcome | None) -> "Table":
        return self.feed(Asked(held, outcome), after=0.1)


def settled(exchange: Exchange) -> dict[Held, Word]:
    return {word.held: word for word in exchange.settle}
