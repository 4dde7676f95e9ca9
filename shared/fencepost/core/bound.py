"""One end of a range of time."""

from msgspec import Struct


class Bound(Struct, frozen=True, kw_only=True):
    """An instant as text with its time zone, or seconds back from now (of a command: from when it begins)."""

    at: str | None = None
    seconds_ago: float | None = None


OPEN_END = Bound()
