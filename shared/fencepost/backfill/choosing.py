"""Which notifications a message means: ids, or a selector with a range of time."""

from datetime import datetime
from typing import Any

from fencepost.backfill.wire import Range
from fencepost.core.command import Bound, CommandRefused, Select
from fencepost.core.duration import seconds_in
from fencepost.core.payload import text_fault


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
    try:
        return Bound(seconds_ago=seconds_in(text))
    except ValueError:
        pass
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.utcoffset() is None:
        raise CommandRefused(f"select.{name}: an instant with its time zone, or 90s, 5m, 2h, 3d")
    return Bound(at=instant.isoformat())


def storable(**texts: str | None) -> None:
    for name, text in texts.items():
        if text is not None and (fault := text_fault(text)):
            raise CommandRefused(f"{name}: {fault}")
