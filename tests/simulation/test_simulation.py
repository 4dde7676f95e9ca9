"""The gate: thousands of schedules keep the guarantees, and each kind of fault really fired."""

from collections import Counter

import pytest

from tests.simulation.faults import Fault
from tests.simulation.schedule import Schedule

SEEDS = 2000  # more: make sim SEEDS=100000
pytestmark = pytest.mark.slow


def test_every_schedule_keeps_the_guarantees_and_every_fault_fires() -> None:
    fired: Counter[Fault] = Counter()
    for seed in range(SEEDS):
        fired += Schedule(seed).run()
    silent = [fault.value for fault in Fault if not fired[fault]]
    assert not silent, f"injectors that never fired in {SEEDS} schedules: {silent}"


def test_a_seed_plays_the_same_schedule_again() -> None:
    one, two = Schedule(17), Schedule(17)
    assert one.run() == two.run()
    assert one.world.now == two.world.now
    assert one.world.database.closed == two.world.database.closed
