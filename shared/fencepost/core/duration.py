"""Durations as people write and read them: `90s`, `5m`, `2h`, `3d`."""

import math
import re

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
WRITTEN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)?")


def seconds_in(text: str) -> float:
    """Seconds; a bare number is seconds. Raises ValueError with one line for anything else."""
    found = WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no duration: write 90s, 5m, 2h or 3d")
    return float(found[1]) * UNITS[found[2] or "s"]


def spoken(seconds: float) -> str:
    """Two units at most, whole ones above a minute: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 1 h`."""
    if not math.isfinite(seconds):
        return "for ever"
    size = abs(seconds)
    if size < 10:
        return f"{round(size, 1):g} s"
    if size < 60:
        return f"{int(size)} s"
    for unit, small, name, small_name in ((60, 1, "min", "s"), (3600, 60, "h", "min")):
        if size < unit * (60 if name == "min" else 24):
            return _two(size, unit, small, name, small_name)
    return _two(size, 86400, 3600, "d", "h")


def _two(size: float, unit: int, small: int, name: str, small_name: str) -> str:
    whole, rest = divmod(size, unit)
    few = int(rest // small)
    return f"{int(whole)} {name} {few} {small_name}" if few else f"{int(whole)} {name}"
