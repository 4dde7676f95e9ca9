"""Retry-After in every form servers send it. Pure: the server's own Date is the clock (RFC 9110, 10.2.3)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

ABSURD_SECONDS = 31 * 86400.0  # nobody means this; whoever says it is ignored, not obeyed
SECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)
DATE = re.compile(r"[A-Za-z]{3,9},? .*[0-9]{2}:[0-9]{2}:[0-9]{2}.*", re.ASCII)


def retry_after_seconds(value: str | None, *, date: str | None) -> float | None:
    """How long the server wants to be left alone; None where it said nothing that makes sense.

    Whole seconds or an HTTP date (any of the three formats), which needs the response's own `Date` to be a duration.
    Negative, fractional and absurd values are nothing. What is no number is never tried as a half-read date: "-3" is
    no year.
    """
    text = (value or "").strip()
    if not text:
        return None  # nearly every answer: its date is not worth reading
    if SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        until, now = _instant(text), _instant((date or "").strip())
        if until is None or now is None:
            return None
        seconds = max(0.0, (until - now).total_seconds())
    return seconds if seconds <= ABSURD_SECONDS else None


def _instant(text: str) -> datetime | None:
    if not DATE.fullmatch(text):
        return None
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
