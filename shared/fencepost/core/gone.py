"""Recipients that are gone: what a provider said of one, and how many of them at once are no longer believed."""

from collections import deque

from fencepost.core.outcome import Delivered, Outcome, Rejected, Unregistered

MASS_REASON = (
    "unregistered:"  # how the reason of such a pause begins; the schema withholds events by it
)
MASS_WINDOW = 50  # sends that were answered for good


def gone_words(outcome: Unregistered) -> str | None:
    """`gone_at=SECONDS guarded`, each where it was said; None: neither. The schema reads it (050_unregistered.sql).

    Unix seconds with milliseconds; a time no clock shows is left out.
    """
    words = []
    if outcome.gone_at is not None and 0.0 <= outcome.gone_at < 1e10:
        words.append(f"gone_at={outcome.gone_at:.3f}")
    if outcome.guarded:
        words.append("guarded")
    return " ".join(words) or None


class Mass:
    """Whether a channel's recipients seem to be gone in a mass: a wrong project, key or environment looks like that.

    Counts the answers to the last sends of one run; a mass is told once, then counting begins anew.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._gone: deque[bool] = deque(maxlen=MASS_WINDOW)

    def hear(self, outcome: Outcome) -> str | None:
        """The reason for a pause, where it is one now."""
        if not isinstance(outcome, Delivered | Rejected | Unregistered):
            return None
        gone = isinstance(outcome, Unregistered)
        self._gone.append(gone)
        if not gone or (count := sum(self._gone)) < self._limit:
            return None
        told = f"{MASS_REASON} {count} of the last {len(self._gone)} recipients are said to be gone"
        self._gone.clear()
        return told
