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
        if not ids:
            raise CommandRefused("ids: names none")
        return {"ids": tuple(dict.fromkeys(ids))}
    if not kinds and select.reason is not None:
        raise CommandRefused("select.reason: delivered ones have none; leave it out here")
    if select.kinds is not None and not set(select.kinds) <= set(kinds):
        raise CommandRefused(f"select.kinds: may be {', '.join(kinds) or 'left out'} here")
    storable(channel=select.channel, reason=select.reason)
    since, until = _bound("since", select.since), _bound("until", select.until)
    if _is_empty(since, until):
        raise CommandRefused("select: since is not before until, so that nothing can be meant")
    return {
        "select": Select(
            channel=select.channel,
            kinds=select.kinds or kinds,
            reason=select.reason,
            since=since,
            until=until,
        )
    }


def _is_empty(since: Bound, until: Bound) -> bool:
    """As far as it can be told without the database's clock: two of one sort."""
    if since.seconds_ago is not None and until.seconds_ago is not None:
        return since.seconds_ago <= until.seconds_ago
    return since.at is not None and until.at is not None and _is_later(since.at, until.at)


def _is_later(one: str, other: str) -> bool:
    return datetime.fromisoformat(one) >= datetime.fromisoformat(other)


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
