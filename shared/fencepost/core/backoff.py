"""How long to wait before the next try. Chance comes in as a number: `roll` in [0, 1)."""

import math

from fencepost.core.channel import AttemptPolicy
from fencepost.core.notification import Claimed

JITTER_SHARE = 0.2  # of a retry-after, on top of it: everybody told "60" must not come back at once
DOUBLINGS_MAX = 40  # 2**40 bases are past every cap, and well inside a float


def full_jitter(number: int, *, base_seconds: float, cap_seconds: float, roll: float) -> float:
    """Evenly between 0 and base · 2^(number-1), at most the cap. `number` counts from 1."""
    doublings = min(max(number - 1, 0), DOUBLINGS_MAX)
    ceiling: float = min(cap_seconds, base_seconds * 2.0**doublings)
    return roll * ceiling


def retry_after_floor(seconds: float | None, *, max_seconds: float) -> float | None:
    """The provider's wish as a floor, clamped; None where there is none or it makes no sense (negative, NaN)."""
    if seconds is None or math.isnan(seconds) or seconds < 0:
        return None
    return min(seconds, max_seconds)


def wait_seconds(
    number: int, *, retry_after_seconds: float | None, policy: AttemptPolicy, roll: float
) -> float:
    """Full jitter for the `number`-th wait; never earlier than the provider's retry-after plus positive jitter."""
    backoff = full_jitter(
        number,
        base_seconds=policy.backoff_base_seconds,
        cap_seconds=policy.backoff_cap_seconds,
        roll=roll,
    )
    floor = retry_after_floor(retry_after_seconds, max_seconds=policy.retry_after_max_seconds)
    if floor is None:
        return backoff
    return max(backoff, floor * (1.0 + JITTER_SHARE * roll))


def refunds(claimed: Claimed) -> int:
    """Which refunded claim this would be, counted from 1: what the fence counts and `attempts` does not."""
    return max(claimed.fence - claimed.attempts, 0) + 1
