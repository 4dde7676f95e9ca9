"""A circuit breaker over the sends of one channel, or of one host behind it: closed, open, half-open.

Closed: everything goes. Open: nothing, for a time that doubles with each opening in a row. Then half-open: one probe;
an answer closes it, a failure opens it again. Open and half-open are known to other runs by the reason of the pause.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import assert_never

from msgspec import Struct

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)

OPEN_BASE_SECONDS = 15.0  # longer than a send: what was in the air when it opened has come back
OPEN_MAX_SECONDS = 900.0
REASON = re.compile(r"breaker ([0-9]{1,3}): ", re.ASCII)


class Limits(Struct, frozen=True, kw_only=True):
    """Opens when, of the last `window` outcomes (`least` of them at least), this share was bad."""

    window: int
    least: int
    share: float


CHANNEL = Limits(window=20, least=8, share=0.75)
HOST = Limits(window=5, least=5, share=1.0)


def is_bad(outcome: Outcome) -> bool | None:
    """Whether the provider is in trouble; None: it says nothing of that (its own pauses do)."""
    match outcome:
        case NotSent(blameless=True):
            return None
        case NotSent() | Failed() | Uncertain():
            return True
        case Delivered() | Rejected() | Unregistered():
            return False
        case Throttled() | CredentialFailure():
            return None
        case _:
            assert_never(outcome)


def is_silent(outcome: Outcome) -> bool | None:
    """Whether a host did not answer. One that answers with trouble keeps nobody waiting: its rows back off alone."""
    return None if isinstance(outcome, Failed) else is_bad(outcome)


class Breaker:
    """One run's view. Instants are the run's monotonic clock."""

    def __init__(self, limits: Limits, judge: Callable[[Outcome], bool | None] = is_bad) -> None:
        self._limits = limits
        self._judge = judge
        self._bad: deque[bool] = deque(maxlen=limits.window)
        self._level = 0  # openings in a row; 0: closed
        self._open_until = 0.0

    @property
    def closed(self) -> bool:
        return self._level == 0

    @property
    def open_until(self) -> float:
        return self._open_until

    def told(self, reason: str | None, open_until: float) -> None:
        """Another run opened it: what a pause's reason says. Any other reason is no news."""
        found = REASON.match(reason or "")
        if found is not None and open_until >= self._open_until:
            self._level, self._open_until = max(int(found[1]), 1), open_until

    def hear(self, outcome: Outcome, now: float, roll: float) -> str | None:
        """Learn from the end of a send; the reason, where it opens now, until `open_until`."""
        bad = self._judge(outcome)
        if bad is None or now < self._open_until:  # begun before it opened
            return None
        if not bad:
            self._level = 0
        self._bad.append(bad)
        if not bad or not (self._level or self._is_too_bad()):
            return None
        return self._open(now, roll)

    def _is_too_bad(self) -> bool:
        count = len(self._bad)
        return count >= self._limits.least and sum(self._bad) >= self._limits.share * count

    def _open(self, now: float, roll: float) -> str:
        what = (
            "the probe" if self._level else f"{sum(self._bad)} of the last {len(self._bad)} sends"
        )
        self._level = min(self._level + 1, 999)
        doubled: float = OPEN_BASE_SECONDS * 2.0 ** min(self._level - 1, 10)
        self._open_until = now + min(doubled, OPEN_MAX_SECONDS) * (1.0 + 0.2 * roll)
        self._bad.clear()
        return f"breaker {self._level}: {what} failed"
