"""Which notifications a message means: ids, or a selector with a range of time."""

from typing import Any

from fencepost.backfill.bound import bound_in, is_empty
from fencepost.backfill.wire import Range
from fencepost.core.bound import Bound
from fencepost.core.command import CommandRefused, Select
from fencepost.core.payload import text_fault


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
    if is_empty(since, until):
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


def _bound(name: str, text: str | None) -> Bound:
    try:
        return bound_in(text)
    except ValueError as error:
        raise CommandRefused(f"select.{name}: {error}") from None


def storable(**texts: str | None) -> None:
    for name, text in texts.items():
        if text is not None and (fault := text_fault(text)):
            raise CommandRefused(f"{name}: {fault}")
