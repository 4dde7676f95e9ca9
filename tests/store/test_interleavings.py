"""Random interleavings of runs, operators and callbacks, said to the real database and to the model of it.

They agree on every verdict, every claimed row and every ledger after every step: what the simulation proves about the
model holds for the database.
"""

from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fencepost.core.exchange import Exchanged, Word
from fencepost.core.notification import AttemptOutcome, Claimed, Held, Kind, NotificationId
from tests.simulation.test_contract import ModelBench
from tests.store.bench import (
    Bench,
    Worker,
    dead,
    delivered,
    hold,
    not_sent,
    release,
    retry,
    uncertain,
    word,
)
from tests.store.postgres_bench import PostgresBench

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

NOTIFICATIONS_MAX = 6
OUTCOMES = [
    AttemptOutcome.DELIVERED,
    AttemptOutcome.REJECTED,
    AttemptOutcome.FAILED,
    AttemptOutcome.NOT_SENT,
]


class Maker(Protocol):
    def __call__(self, held: Held) -> Word: ...


def expired(held: Held) -> Word:
    return word(held, None, Kind.EXPIRED, reason="expired")


def gave_up(held: Held) -> Word:
    return word(held, AttemptOutcome.UNCERTAIN, Kind.UNCERTAIN, reason="hold")


def later(held: Held) -> Word:
    return retry(held, 5 + held.id / 1000)  # no two due at one instant


MAKERS: list[Maker] = [
    delivered, dead, retry, later, not_sent, uncertain, hold, release, expired, gave_up,
]  # fmt: skip


def comparable(claimed: Claimed) -> tuple[Any, ...]:
    """What both must say of a claimed row: all but what is drawn or rounded."""
    known = (claimed.held, claimed.attempts, claimed.interruptions, claimed.doubt, claimed.evidence)
    first = claimed.first_attempt_age_seconds
    ages = (claimed.age_seconds, first, claimed.lease_left_seconds, claimed.expires_in_seconds)
    return *known, *(None if age is None else round(age, 3) for age in ages), claimed.on_uncertain


class Twin:
    """One run, in both databases."""

    def __init__(self, benches: tuple[Bench, Bench]) -> None:
        self.workers = [Worker(bench) for bench in benches]
        self.seen: list[Held] = []
        self.last_words: tuple[Word, ...] = ()

    def say(self, *words: Word, limit: int = 0, again: bool = False, last: bool = False) -> None:
        answers = [self._say(worker, words, limit, again, last) for worker in self.workers]
        real, model = answers
        assert real.verdicts == model.verdicts
        assert real.lost == model.lost
        assert {comparable(one) for one in real.claimed} == {
            comparable(one) for one in model.claimed
        }
        self.seen += [one.held for one in real.claimed if one.held not in self.seen]
        self.last_words = words

    def _say(
        self, worker: Worker, words: tuple[Word, ...], limit: int, again: bool, last: bool
    ) -> Exchanged:
        want = worker.want(limit, hint=False) if limit else ()
        renew = tuple(self.seen[-2:])
        seq = worker.seq if again and worker.seq else None
        return worker.say(*words, renew=renew, claim=want, last=last, seq=seq)


class Interleaving(RuleBasedStateMachine):
    real: PostgresBench

    def __init__(self) -> None:
        super().__init__()
        self.real.reset()
        self.benches: tuple[Bench, Bench] = (self.real, ModelBench())
        self.twins = [Twin(self.benches) for _ in range(2)]
        self.ids: list[NotificationId] = []

    def everywhere(self, name: str, *words: Any, **named: Any) -> None:
        self.pass_time(0.001)
        real, model = (getattr(bench, name)(*words, **named) for bench in self.benches)
        assert real == model, name

    def pass_time(self, seconds: float) -> None:
        for bench in self.benches:
            bench.advance(seconds)

    @rule(priority=st.integers(0, 2), expires_in=st.sampled_from([None, None, 30.0]))
    def enqueue(self, priority: int, expires_in: float | None) -> None:
        if len(self.ids) < NOTIFICATIONS_MAX:
            self.pass_time(0.001)
            ids = [
                bench.enqueue(priority=priority, expires_in=expires_in) for bench in self.benches
            ]
            assert ids[0] == ids[1]
            self.ids += ids[0]

    @rule(run=st.integers(0, 1), limit=st.sampled_from([1, 2, 50]))
    def claim(self, run: int, limit: int) -> None:
        self.pass_time(0.001)
        self.twins[run].say(limit=limit)

    @rule(run=st.integers(0, 1), makers=st.lists(st.sampled_from(MAKERS), min_size=1, max_size=5))
    def settle(self, run: int, makers: list[Maker]) -> None:
        """Words about what this run held last, whether it still does or not."""
        self.pass_time(0.001)
        held = reversed(self.twins[run].seen)
        self.twins[run].say(*(make(one) for make, one in zip(makers, held, strict=False)))

    @rule(run=st.integers(0, 1), maker=st.sampled_from(MAKERS), whose=st.integers(0, 1))
    def settle_anything(self, run: int, maker: Maker, whose: int) -> None:
        """A word about what any run ever held."""
        self.pass_time(0.001)
        if seen := self.twins[whose].seen:
            self.twins[run].say(maker(seen[0]), limit=1)

    @rule(run=st.integers(0, 1))
    def say_again(self, run: int) -> None:
        self.twins[run].say(*self.twins[run].last_words, limit=50, again=True)

    @rule(run=st.integers(0, 1), again=st.booleans())
    def end(self, run: int, again: bool) -> None:
        self.twins[run].say(last=True, again=again)
        self.twins[run].say(*self.twins[run].last_words)
        seen = self.twins[run].seen
        self.twins[run] = Twin(self.benches)
        self.twins[run].seen = seen[-2:]

    @rule(seconds=st.sampled_from([1.0, 6.0, 21.0, 21.0, 1000.0, -400.0]))
    def time_passes(self, seconds: float) -> None:
        self.pass_time(seconds)

    @rule(
        n=st.integers(0, 9),
        outcome=st.sampled_from(OUTCOMES),
        fence=st.sampled_from([None, 1, 1, 2, 3]),
        source=st.sampled_from(["callback", "operator"]),
    )
    def evidence(self, n: int, outcome: AttemptOutcome, fence: int | None, source: str) -> None:
        if self.ids:
            id = self.ids[n % len(self.ids)]
            self.everywhere("evidence", id, outcome, fence=fence, source=source)

    @rule(n=st.integers(0, 9))
    def cancel(self, n: int) -> None:
        if self.ids:
            self.everywhere("cancel", self.ids[n % len(self.ids)])

    @rule(n=st.integers(0, 9), resend=st.booleans())
    def redrive(self, n: int, resend: bool) -> None:
        if self.ids:
            self.everywhere("redrive", self.ids[n % len(self.ids)], resend=resend)

    @rule(n=st.integers(0, 9), outcome=st.sampled_from(["delivered", "not_delivered", "dead"]))
    def resolve(self, n: int, outcome: str) -> None:
        if self.ids:
            self.everywhere("resolve", self.ids[n % len(self.ids)], outcome)

    @rule(rarely=st.integers(0, 5))
    def quarantine(self, rarely: int) -> None:
        if not rarely:
            self.everywhere("quarantine")

    @invariant()
    def ledgers_agree(self) -> None:
        for id in self.ids:
            real, model = (bench.standing(id) for bench in self.benches)
            assert real == model

    @invariant()
    def rows_are_conserved(self) -> None:
        assert self.real.conserved()


def test_the_model_and_the_database_agree(bench: PostgresBench) -> None:
    machine = type("Interleaving", (Interleaving,), {"real": bench})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            database=None,
        ),
    )
