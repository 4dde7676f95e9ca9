"""G4 and the phases: what may be started, asked for and said, and which settings cannot both hold."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.budget import Budget, ImpossibleTiming, Timing

INSTANTS = st.floats(-1e6, 1e6)
LEFT = st.floats(-100.0, 1000.0)


def budget(hard_end: float = 60.0, **changes: float) -> Budget:
    return Budget(timing=Timing(**changes), hard_end=hard_end)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"lease_seconds": 10.0, "send_timeout_seconds": 15.0}, ("lease_seconds", "send_timeout")),
        ({"lease_seconds": 12.0}, ("lease_seconds (12)", "settle_reserve_seconds (2)")),
        ({"send_timeout_seconds": 40.0, "lease_seconds": 30.0}, ("30", "40")),
        ({"lease_seconds": 901.0}, ("lease_seconds (901)", "longest lease (900)")),
        ({"linger_seconds": 2.0}, ("linger_seconds (2)", "settle_reserve_seconds (2)")),
    ],
)
def test_impossible_relations_name_both_settings(
    changes: dict[str, Any], names: tuple[str, ...]
) -> None:
    with pytest.raises(ImpossibleTiming) as refused:
        Timing(**changes)
    assert all(name in str(refused.value) for name in names)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    "name",
    [
        "send_timeout_seconds",
        "settle_reserve_seconds",
        "lease_seconds",
        "linger_seconds",
        "lease_margin_seconds",
        "exchange_timeout_seconds",
    ],
)
def test_odd_numbers_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ImpossibleTiming, match=name):
        Timing(**{name: value})


def test_zero_is_a_value_for_linger_and_margin_only() -> None:
    assert Timing(linger_seconds=0.0, lease_margin_seconds=0.0).linger_seconds == 0.0
    with pytest.raises(ImpossibleTiming, match="send_timeout_seconds"):
        Timing(send_timeout_seconds=0.0)


@given(INSTANTS, LEFT, LEFT)
def test_a_send_starts_only_if_it_fits_both_lease_and_invocation(
    now: float, lease_left: float, time_left: float
) -> None:
    may = budget(hard_end=now + time_left).may_start(now, now + lease_left)
    if min(lease_left, time_left) < 12.0 - 1e-6:
        assert not may
    if min(lease_left, time_left) > 12.0 + 1e-6:
        assert may


@pytest.mark.parametrize("left", [0.0, -5.0, 1.0, 11.99])
def test_too_little_time_left_claims_nothing(left: float) -> None:
    assert not budget(hard_end=left).may_claim(0.0)


@given(INSTANTS, LEFT)
def test_a_lease_never_outlives_the_hard_end_by_more_than_the_margin(
    now: float, left: float
) -> None:
    lease = budget(hard_end=now + left).lease_seconds(now)
    assert 0.0 < lease <= 20.0
    assert lease <= max(left + 2.0, 0.001) + 1e-6


@given(INSTANTS, LEFT)
def test_the_phases_follow_each_other(now: float, left: float) -> None:
    phases = budget(hard_end=now + left)
    assert phases.stop_claiming < phases.hard_stop < phases.finish_by < phases.hard_end


def test_a_renewal_is_due_at_half_the_lease_and_not_when_it_brings_nothing() -> None:
    phases = budget(hard_end=60.0)
    assert phases.renew_at(20.0) == 10.0
    assert phases.renewal_helps(10.0, 20.0)
    assert not phases.renewal_helps(1.0, 20.0)
    assert not phases.renewal_helps(55.0, 62.0)  # it ends with the invocation already
