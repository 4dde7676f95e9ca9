"""One end of a range of time as people write it: `2026-11-30T10:00Z`, or so long ago: `90s`, `5m`, `2h`, `3d`."""

from datetime import UTC, datetime

from fencepost.core.bound import Bound
from fencepost.core.duration import seconds_in

AGO_SECONDS_MAX = 36500 * 86400.0  # beyond it PostgreSQL has no instant any more
WRITTEN = "an instant with its time zone (2026-11-30T10:00Z), or 90s, 5m, 2h, 3d (a hundred years at most)"


def bound_in(text: str | None) -> Bound:
    """None: an open end. Raises ValueError with one line for anything that is neither."""
    if text is None:
        return Bound()
    bound = _ago(text) or _instant(text)
    if bound is None:
        raise ValueError(WRITTEN)
    return bound


def written(bound: Bound) -> str | None:
    """As `bound_in` reads it again."""
    return bound.at if bound.seconds_ago is None else f"{bound.seconds_ago:.3f}s"


def is_empty(since: Bound, until: Bound) -> bool:
    """As far as it can be told without the database's clock: two of one sort."""
    if since.seconds_ago is not None and until.seconds_ago is not None:
        return since.seconds_ago <= until.seconds_ago
    return since.at is not None and until.at is not None and _is_later(since.at, until.at)


def _is_later(one: str, other: str) -> bool:
    return datetime.fromisoformat(one) >= datetime.fromisoformat(other)


def _ago(text: str) -> Bound | None:
    try:
        seconds = seconds_in(text)
    except ValueError:
        return None
    return Bound(seconds_ago=seconds) if seconds <= AGO_SECONDS_MAX else None


def _instant(text: str) -> Bound | None:
    """In UTC: PostgreSQL reads no displacement of 16 hours or more."""
    try:
        instant = datetime.fromisoformat(text)
        return (
            None if instant.utcoffset() is None else Bound(at=instant.astimezone(UTC).isoformat())
        )
    except (ValueError, OverflowError):
        return None
