"""What a provider said of a recipient that is gone, as the reference of the attempt that learnt it."""

from fencepost.core.outcome import Unregistered


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
