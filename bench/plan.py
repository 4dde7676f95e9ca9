"""What one call of the bench measures, and how much of it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`scale` 1.0 is what the README shows; a hundredth of it tells whether everything runs."""

    scale: float = 1.0
    repeats: int = 3
    servers: Sequence[str] = ("15", "18")
    deep: bool = False  # the slow cases too

    def rows(self, at_full_scale: int, at_least: int = 500) -> int:
        return max(min(at_full_scale, at_least), int(at_full_scale * self.scale))
