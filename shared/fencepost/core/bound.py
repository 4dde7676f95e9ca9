"""One end of a range of time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An instant as text with its time zone, or seconds back from now (of a command: from when it begins)."""

    at: str | None = None
    seconds_ago: float | None = None


OPEN_END = Bound()
