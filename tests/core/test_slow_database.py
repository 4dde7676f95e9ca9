"""A database that answers each exchange late: a run holds no more than its slots, and loses no row that it has sent."""

from dataclasses import dataclass, field

import pytest

from fencepost.core.budget import Timing
from fencepost.core.exchange import NO_FACTS, Exchange, Exchanged, Verdict
from fencepost.core.fact import WordSettled
from fencepost.core.notification import Claimed, Held
from fencepost.core.outcome import Delivered
from fencepost.core.step import Answered, Event, Replied, Say, Send, Tick
from tests.core.driver import OPEN, Table
from tests.core.rows import a_channel, a_claimed

SLOTS = 40
ROWS = 200


@dataclass
class SlowDatabase:
    """Hears a run half way through each exchange, and is heard at its end."""

    table: Table
    exchange_seconds: float
    send_seconds: float
    waiting: list[Claimed] = field(default_factory=lambda: [*map(a_claimed, range(1, ROWS + 1))])
    lease_ends: dict[Held, float] = field(default_factory=dict)
    coming: list[tuple[float, Event | Exchange]] = field(default_factory=list)

    def play(self) -> None:
        self._begin()
        while not self.table.finished:
            wake_at = self.table.run.wake_at()
            self.coming.sort(key=lambda one: one[0])
            at, what = self.coming[0] if self.coming else (float("inf"), Tick())
            if wake_at is not None and wake_at < at:
                at, what = wake_at, Tick()
            elif self.coming:
                self.coming.pop(0)
            if isinstance(what, Exchange):
                self._hear(what, at)
            else:
                self.table.feed(what, after=max(at - self.table.now, 0.0))
                self._begin()

    def _begin(self) -> None:
        """What the run just asked for is under way."""
        now = self.table.now
        for say in self.table.of(Say):
            self.coming.append((now + self.exchange_seconds / 2, say.exchange))
        for send in self.table.of(Send):
            replied = Replied(send.claimed.held, Delivered(), NO_FACTS)
            self.coming.append((now + self.send_seconds, replied))

    def _hear(self, said: Exchange, now: float) -> None:
        for word in said.settle:
            assert now < self.lease_ends.pop(word.held), "it was sent, and lost before it was said"
        for held in said.renew:
            self.lease_ends[held] = now + said.lease_seconds
        limit = said.claim[0].limit if said.claim else 0
        claimed, self.waiting = self.waiting[:limit], self.waiting[limit:]
        self.lease_ends |= {one.held: now + said.lease_seconds for one in claimed}
        assert len(self.lease_ends) <= SLOTS
        verdicts = (Verdict.APPLIED,) * len(said.settle)
        gates = {channel.id: OPEN for channel in self.table.channels}
        answer = Exchanged(verdicts=verdicts, lost=(), gates=gates, claimed=tuple(claimed))
        self.coming.append((now + self.exchange_seconds / 2, Answered(answer)))


@pytest.mark.parametrize("send_seconds", [0.1, 3.0, 9.9])
@pytest.mark.parametrize("exchange_seconds", [0.1, 2.0, 4.9])
@pytest.mark.parametrize("lease_seconds", [14.0, 20.0, 60.0])
def test_what_was_sent_is_said_before_its_lease_is_over(
    lease_seconds: float, exchange_seconds: float, send_seconds: float
) -> None:
    """Where completions backed up, a rescuer once put 98,000 delivered messages back into the queue."""
    timing = Timing(lease_seconds=lease_seconds)
    table = Table(a_channel(slots=SLOTS), hard_end=300.0, timing=timing)
    database = SlowDatabase(table, exchange_seconds, send_seconds)
    database.play()
    assert (database.waiting, database.lease_ends) == ([], {})
    assert sum(isinstance(fact, WordSettled) for fact in table.facts) == ROWS
