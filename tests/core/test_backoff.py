"""Waits: full jitter, retry-after as a floor, and no hot loop."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.backoff import full_jitter, refunds, retry_after_floor, wait_seconds
from fencepost.core.channel import AttemptPolicy
from tests.core.rows import a_claimed

POLICY = AttemptPolicy()
ROLLS = st.floats(0.0, 1.0, exclude_max=True)
NUMBERS = st.integers(-5, 100_000)


@given(NUMBERS, ROLLS)
def test_full_jitter_lies_between_nothing_and_the_cap(number: int, roll: float) -> None:
    wait = full_jitter(number, base_seconds=5.0, cap_seconds=3600.0, roll=roll)
    assert 0.0 <= wait <= 3600.0


@given(st.integers(1, 60), ROLLS)
def test_the_ceiling_doubles_until_the_cap(number: int, roll: float) -> None:
    one = full_jitter(number, base_seconds=5.0, cap_seconds=3600.0, roll=roll)
    next_one = full_jitter(number + 1, base_seconds=5.0, cap_seconds=3600.0, roll=roll)
    assert next_one == pytest.approx(min(2 * one, 3600.0 * roll))


def test_the_first_wait_is_within_one_base() -> None:
    assert full_jitter(1, base_seconds=5.0, cap_seconds=3600.0, roll=0.999) == pytest.approx(4.995)


@given(st.floats(0.0, 1e12), NUMBERS, ROLLS)
def test_never_earlier_than_the_retry_after_and_never_much_later(
    wish: float, number: int, roll: float
) -> None:
    wait = wait_seconds(number, retry_after_seconds=wish, policy=POLICY, roll=roll)
    floor = min(wish, POLICY.retry_after_max_seconds)
    assert floor <= wait <= max(1.2 * floor, POLICY.backoff_cap_seconds)


def test_a_hundred_rows_told_sixty_come_back_between_60_and_72_apart() -> None:
    waits = [
        wait_seconds(1, retry_after_seconds=60.0, policy=POLICY, roll=n / 100) for n in range(100)
    ]
    assert all(60.0 <= wait <= 72.0 for wait in waits)
    assert len(set(waits)) > 50


@pytest.mark.parametrize("nonsense", [None, -5.0, -0.001, math.nan, -math.inf])
def test_a_retry_after_that_makes_no_sense_is_none(nonsense: float | None) -> None:
    assert retry_after_floor(nonsense, max_seconds=3600.0) is None
    plain = wait_seconds(3, retry_after_seconds=None, policy=POLICY, roll=0.5)
    assert wait_seconds(3, retry_after_seconds=nonsense, policy=POLICY, roll=0.5) == plain


@pytest.mark.parametrize("giant", [1e9, 9999999999.0, math.inf])
def test_a_giant_retry_after_is_clamped(giant: float) -> None:
    assert retry_after_floor(giant, max_seconds=3600.0) == 3600.0


def test_zero_is_a_wish_and_keeps_the_backoff() -> None:
    assert retry_after_floor(0.0, max_seconds=3600.0) == 0.0
    assert wait_seconds(2, retry_after_seconds=0.0, policy=POLICY, roll=0.5) == 5.0


@given(st.integers(1, 1000), st.integers(0, 1000))
def test_refunds_count_what_the_fence_counts_and_attempts_do_not(
    attempts: int, refunded: int
) -> None:
    claimed = a_claimed(fence=attempts + refunded, attempts=attempts)
    assert refunds(claimed) == refunded + 1


def test_refunds_survive_a_fence_that_was_lost() -> None:
    assert refunds(a_claimed(fence=1, attempts=7)) == 1
