"""Ids by selector, page by page. Nothing is locked between two pages."""

from collections.abc import Iterator
from typing import Any

from fencepost.core.command import Select
from fencepost.core.notification import Kind
from fencepost.core.operation import Selector
from fencepost.store.statement import Params, Statements

PAGE = 1000  # notifications in one transaction of a bulk command


def pages(say: Statements, selector: Selector) -> Iterator[list[int]]:
    """Pages of at most 1000 ids; `limit` counts all of them. What is parked or enqueued after the first page
    is not met: a command never redrives the same notification twice."""
    ends = say.rows("operator_time_range", ends_of(selector))[0]
    left = selector.limit
    for page in _unlimited(say, selector, ends):
        ids = page if left is None else page[:left]
        if ids:
            yield ids
        left = None if left is None else left - len(ids)
        if left == 0:
            return


def ends_of(range: Selector | Select) -> Params:
    """The two ends of a range, as statements take them."""
    return {
        "since": range.since.at,
        "since_seconds": range.since.seconds_ago,
        "until": range.until.at,
        "until_seconds": range.until.seconds_ago,
    }


def _unlimited(say: Statements, selector: Selector, ends: Params) -> Iterator[list[int]]:
    if not selector.kinds:
        yield from _open(say, selector, ends)
    for kind in selector.kinds:
        yield from _parked(say, selector, kind, ends)


def _open(say: Statements, selector: Selector, ends: Params) -> Iterator[list[int]]:
    words = {"channel": selector.channel, "in_doubt": selector.in_doubt, "limit": PAGE, **ends}
    after = 0
    while rows := say.rows("operator_open_page", {**words, "after_id": after}):
        yield [row["id"] for row in rows]
        after = rows[-1]["id"]


def _parked(say: Statements, selector: Selector, kind: Kind, ends: Params) -> Iterator[list[int]]:
    words = {"kind": kind, "channel": selector.channel, "reason": selector.reason, **ends}
    after: dict[str, Any] = {"after_at": None, "after_id": None}
    while rows := say.rows("operator_parked_page", {**words, **after, "limit": PAGE}):
        yield [row["id"] for row in rows]
        after = {"after_at": rows[-1]["closed_at"], "after_id": rows[-1]["id"]}
