"""The simulation itself is tested: each guard is taken away in turn, and some schedule must break.

Guards whose loss only a rare schedule shows have a test of their own in tests/core/test_run.py.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from fencepost.core import doubt
from fencepost.core.budget import Budget
from fencepost.core.conversation import Conversation
from fencepost.core.deliveries import Deliveries
from fencepost.core.doubt import Advice, SendIt
from fencepost.core.inflight import Inflight
from fencepost.core.isolation import Isolation
from fencepost.core.notification import Claimed, Held
from fencepost.core.renewals import Renewals
from fencepost.core.run import Run
from fencepost.core.words import Words
from tests.simulation.model import Guards
from tests.simulation.schedule import Schedule
from tests.simulation.world import Broken

SEEDS = range(2000)
pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch


def first_broken(guards: Guards | None = None) -> Broken | None:
    """The first guarantee that a schedule finds broken."""
    for seed in SEEDS:
        try:
            Schedule(seed, guards=guards).run()
        except Broken as broken:
            return broken
    return None


DATABASES = [
    (Guards(fence=False), "G1|G5|G2"),
    (Guards(lease=False), "hold|twice|keeps its leases|doubt|G1"),
    (Guards(doubt=False), "leaves doubt"),
    (Guards(seq=False), "G5"),
    (Guards(evidence=False), "G8"),
]


@pytest.mark.parametrize(
    ("guards", "guarantee"), DATABASES, ids=["fence", "lease", "doubt", "seq", "evidence"]
)
def test_a_database_without_its_guard_is_found(guards: Guards, guarantee: str) -> None:
    with pytest.raises(Broken, match=guarantee):
        raise first_broken(guards) or AssertionError("no schedule broke")


def needs(self: Budget) -> float:
    return self.timing.send_and_settle_seconds


def no_time_budget(patch: Patch) -> None:
    def may_start(self: Budget, now: float, lease_until: float) -> bool:
        return now + needs(self) <= lease_until

    patch.setattr(Budget, "may_start", may_start)


def no_lease_budget(patch: Patch) -> None:
    def may_start(self: Budget, now: float, lease_until: float) -> bool:
        return now + needs(self) <= self.hard_end

    patch.setattr(Budget, "may_start", may_start)


def claims_to_the_end(patch: Patch) -> None:
    patch.setattr(Budget, "may_claim", lambda self, now: True)


def full_leases_at_the_end(patch: Patch) -> None:
    patch.setattr(Budget, "lease_seconds", lambda self, now: self.timing.lease_seconds)


def no_policy_for_doubt(patch: Patch) -> None:
    patch.setattr(doubt, "clear_doubt", lambda *_, **__: SendIt())


def advised_as_if(patch: Patch, **changes: Any) -> None:
    advise = doubt.advise

    def blind(claimed: Claimed, *rest: Any, **more: Any) -> Advice:
        return advise(replace(claimed, **changes), *rest, **more)

    patch.setattr(doubt, "advise", blind)


def deaf_to_evidence(patch: Patch) -> None:
    advised_as_if(patch, evidence=None)


def no_poison(patch: Patch) -> None:
    advised_as_if(patch, interruptions=0)


def no_expiry(patch: Patch) -> None:
    patch.setattr(doubt, "has_expired", lambda *_: False)


def no_key_window(patch: Patch) -> None:
    patch.setattr(doubt, "may_resend", lambda *_, **__: True)


def own_row_sent_twice(patch: Patch) -> None:
    patch.setattr(Inflight, "airborne", lambda self, id: False)


def forgets_what_it_has_not_said(patch: Patch) -> None:
    patch.setattr(Words, "about", lambda self, claimed: None)


def new_seq_each_time(patch: Patch) -> None:
    patch.setattr(Conversation, "next_seq", property(lambda self: self._seq + 1))


def nobody_is_alone(patch: Patch) -> None:
    patch.setattr(Deliveries, "_must_be_alone", lambda self, flight: False)


def keeps_the_waiting(patch: Patch) -> None:
    patch.setattr(Deliveries, "release_waiting", lambda self: None)


def gives_nothing_back(patch: Patch) -> None:
    patch.setattr(Deliveries, "_give_back", lambda self, flight, delay_seconds=0.0: None)


def cancels_nothing(patch: Patch) -> None:
    patch.setattr(Deliveries, "cancel_all", lambda self: None)


def forgets_the_lost(patch: Patch) -> None:
    def lost(self: Deliveries, helds: Iterable[Held]) -> None:
        for held in helds:
            self.inflight.remove(held)

    patch.setattr(Deliveries, "lost", lost)


def goes_on_with_the_lost(patch: Patch) -> None:
    patch.setattr(Deliveries, "lost", lambda self, helds: None)


def counts_no_slots(patch: Patch) -> None:
    patch.setattr(Deliveries, "occupied", lambda self, channel: 0)


def isolates_nobody(patch: Patch) -> None:
    patch.setattr(Isolation, "refused", lambda self, *_: [])


def keeps_the_given_up(patch: Patch) -> None:
    patch.setattr(Words, "given_up", lambda self: ())


def renews_nothing(patch: Patch) -> None:
    patch.setattr(Renewals, "due", lambda self, now: ())


def no_last_word(patch: Patch) -> None:
    patch.setattr(Run, "_is_ending", lambda self, now: False)


def takes_the_unsaid_along(patch: Patch) -> None:
    patch.setattr(Words, "unsaid", lambda self: ())


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (no_time_budget, "G4"),
    (no_lease_budget, "G4"),
    (claims_to_the_end, "after stop_claiming"),
    (full_leases_at_the_end, "outlives"),
    (no_policy_for_doubt, "hold|duplicate"),
    (deaf_to_evidence, "G8"),
    (no_poison, "killed three"),
    (no_expiry, "expired"),
    (no_key_window, "duplicate"),
    (own_row_sent_twice, "own row twice"),
    (forgets_what_it_has_not_said, "own row twice"),
    (new_seq_each_time, "new seq"),
    (nobody_is_alone, "alone"),
    (keeps_the_waiting, "last word|G5|ends in time"),
    (gives_nothing_back, "alone|G5|last word|keeps its leases"),
    (cancels_nothing, "last word"),
    (forgets_the_lost, "lost lease|last send"),
    (goes_on_with_the_lost, "lost lease"),
    (counts_no_slots, "G5"),
    (isolates_nobody, "G9|last word"),
    (keeps_the_given_up, "G5|alone"),
    (renews_nothing, "keeps its leases"),
    (no_last_word, "last word"),
    (takes_the_unsaid_along, "G8"),
]


@pytest.mark.parametrize(
    ("mutant", "guarantee"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS]
)
def test_a_run_without_its_guard_is_found(
    mutant: Callable[[Patch], None], guarantee: str, monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(Broken, match=guarantee):
        raise first_broken() or AssertionError("no schedule broke")
