"""The two accidents the demo brings about for real, each in mid-send, each proven from outside before it counts.

A run never starts a send that its time would not cover, so it cannot be *made* to outstay its timeout by slow
recipients. What does happen is that the sandbox stalls: SIGSTOP does exactly that. The kill itself is the
runtime's own: SIGKILL at the function's timeout.
"""

import time
from dataclasses import dataclass, field
from enum import StrEnum

from demo.database import Book, Fate, HeldRow
from demo.ticks import Invocation, Schedule
from rig.receiver import LocalProvider

AGE_SECONDS = (0.6, 2.5)  # of an invocation that is worth freezing: at work, with time left
LOOK_BACK = 1000  # arrivals at the provider
TAKEOVER_SECONDS = 1.0  # from the first row taken over
THAW_BY_SECONDS = 6.2  # of the invocation's age: it must have time left to speak


class Stage(StrEnum):
    WAITING = "looking for a run in mid-send"
    FROZEN = "SIGSTOP in mid-send"
    THAWED = "SIGCONT after its lease"
    ENDED = "brought about"


@dataclass(slots=True)
class Accident:
    """One frozen run in mid-send. `thawed`: let it go on once another run has taken its rows over."""

    name: str
    thawed: bool
    stage: Stage = Stage.WAITING
    invocation: Invocation | None = None
    held: list[HeldRow] = field(default_factory=list)  # when it was frozen
    in_flight: int = 0  # of those, requests that had reached the provider
    fate: Fate = field(default_factory=lambda: Fate(taken_over=0, late_words=0, example=None))
    _first_seen: float | None = None  # a takeover, monotonic

    @property
    def begun(self) -> bool:
        return self.stage is not Stage.WAITING

    @property
    def happened(self) -> bool:
        return self.stage is Stage.ENDED

    def step(self, schedule: Schedule, book: Book, provider: LocalProvider, busy: set[str]) -> None:
        """Look once, and do what is to be done now. `busy`: runtimes of other accidents."""
        if self.stage is Stage.WAITING:
            self._begin(schedule, book, provider, busy)
        elif self.stage in (Stage.FROZEN, Stage.THAWED):
            self._go_on(book)

    def runtime_name(self) -> str | None:
        return self.invocation.runtime.name if self.invocation else None

    def told(self) -> str:
        held, fate = len(self.held), self.fate
        match self.stage:
            case Stage.WAITING:
                return f"{self.stage}, to be {self.name}"
            case Stage.FROZEN:
                return f"{self.stage}, {held} rows held, {self.in_flight} at the provider; to be {self.name}"
            case Stage.THAWED:
                return f"{self.stage}, {fate.taken_over} of its {held} rows taken over by others"
            case Stage.ENDED if self.thawed:
                return f"spoke late of {fate.late_words} rows: refused"
            case Stage.ENDED:
                return f"all {held} rows it held came back after their lease"

    def _begin(
        self, schedule: Schedule, book: Book, provider: LocalProvider, busy: set[str]
    ) -> None:
        low, high = AGE_SECONDS
        for one in schedule.under_way():
            if one.runtime.name not in busy and low <= one.age_seconds <= high:
                if self._frozen_in_mid_send(one, book, provider):
                    self.invocation, self.stage = one, Stage.FROZEN
                return

    def _frozen_in_mid_send(self, one: Invocation, book: Book, provider: LocalProvider) -> bool:
        if one.runtime.pid() is None:
            return False
        one.runtime.freeze()
        self.held = book.held_by(one.tick)
        arrived = {(a.subject, a.at) for a in provider.arrivals(since=-LOOK_BACK)}
        claimed = {row.dedupe_key: row.claimed_at for row in self.held}
        sent = {subject for subject, at in arrived if at >= claimed.get(subject, float("inf"))}
        self.in_flight = len(sent)
        if self.in_flight:
            return True
        one.runtime.thaw()  # between two sends: not what we want to show
        return False

    def _go_on(self, book: Book) -> None:
        assert self.invocation is not None
        ended = self.invocation.ended
        self.fate = book.fate_of(self.invocation.tick)
        if self.thawed:
            self._go_on_to_late_words(book, ended is not None)
        elif ended is not None and not ended.timed_out:
            self.stage = Stage.WAITING  # it got away; another one then
        elif ended is not None and not book.held_by(self.invocation.tick):
            self.stage = Stage.ENDED

    def _go_on_to_late_words(self, book: Book, ended: bool) -> None:
        assert self.invocation is not None
        if self.fate.late_words and ended:
            self.stage = Stage.ENDED
        elif ended:
            self.stage, self._first_seen = Stage.WAITING, None  # its time ran out; another one
        elif self.stage is Stage.FROZEN and self._taken_over(book, self.invocation):
            self.invocation.runtime.thaw()
            self.stage = Stage.THAWED

    def _taken_over(self, book: Book, frozen: Invocation) -> bool:
        """All of it, or some of it for a while: the frozen run's own time is running out too."""
        if not self.fate.taken_over:
            return False
        self._first_seen = self._first_seen or time.monotonic()
        waited = time.monotonic() - self._first_seen > TAKEOVER_SECONDS
        return waited or frozen.age_seconds > THAW_BY_SECONDS or not book.held_by(frozen.tick)
