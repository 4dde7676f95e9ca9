"""Interleaved measuring: what is compared runs close in time, in both orders, and is compared pair by pair."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TypeVar

Taken = TypeVar("Taken")


def interleaved(rounds: Mapping[str, Callable[[], Taken]], repeats: int) -> dict[str, list[Taken]]:
    """Take every round `repeats` times, the order reversed each time."""
    taken: dict[str, list[Taken]] = {name: [] for name in rounds}
    for repeat in range(repeats):
        for name in rounds if repeat % 2 == 0 else reversed(list(rounds)):
            taken[name].append(rounds[name]())
    return taken


def ratio(ours: Sequence[float], base: Sequence[float]) -> float:
    """The median of the pairs' ratios: what disturbed a minute disturbed both of a pair."""
    return median(one / other for one, other in zip(ours, base, strict=True))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie (the nearest one, not between two)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
