"""Which notifications a message means: ids, or a selector with a range of time."""

from datetime import UTC, datetime
from typing import Any

from fencepost.backfill.wire import Range
from fencepost.core.command import Bound, CommandRefused, Select
from fencepost.core.duration import seconds_in
from fencepost.core.payload import text_fault

AGO_SECONDS_MAX = 36500 * 86400.0  # beyond it PostgreSQL has no instant any more


def chosen(
    ids: tuple[int, ...] | None, select: Range | None, *, kinds: tuple[str, ...]
) -> dict[str, Any]:
    """A forgotten selector must not mean all there is: `select` is said, if only as {}."""
    if (ids is None) == (select is None):
        raise CommandRefused("say ids or select, one of them ({} selects all)")
    if select is None:
        return {"ids": tuple(dict.fromkeys(ids or ()))}
    if select.kinds is not None and not set(select.kinds) <= set(kinds):
        raise CommandRefused(f"select.kinds: may be {', '.join(kinds) or 'left out'} here")
    storable(channel=select.channel, reason=select.reason)
    chosen = Select(
        channel=select.channel,
        kinds=select.kinds or kinds,
        reason=select.reason,
        since=_bound("since", select.since),
        until=_bound("until", select.until),
    )
    return {"select": chosen}


def _bound(name: str, text: str | None) -> Bound:
    if text is None:
        return Bound()
    bound = _ago(text) or _instant(text)
    if bound is None:
        raise CommandRefused(
            f"select.{name}: an instant with its time zone, or 90s, 5m, 2h, 3d (a hundred years at most)"
        )
    return bound


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


def storable(**texts: str | None) -> None:
    for name, text in texts.items():
        if text is not None and (fault := text_fault(text)):
            raise CommandRefused(f"{name}: {fault}")
