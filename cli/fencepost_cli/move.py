"""What cancel, redrive and resolve share: find them, ask, move them page by page, say what became of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from fencepost.core.operation import Moved, OperatorError, Selector
from fencepost_cli import selecting
from fencepost_cli.exit_code import ExitCode
from fencepost_cli.output import print_json, print_line, print_trouble

if TYPE_CHECKING:
    from fencepost.store.operator import Operator

Mover = Callable[[Sequence[int]], list[Moved]]
ID_PAGE = 1000
NOT_MOVED = {
    "unknown": "there is no such notification",
    "needs_resend": "it is uncertain; --resend sends it again, and it may arrive twice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One command: its verb, what counts as done, and how it answers."""

    verb: str
    done: frozenset[str]
    dry_run: bool
    yes: bool
    json: bool


def moved(database: "Operator", meant: list[int] | Selector, move: Move, mover: Mover) -> None:
    """Raises `typer.Exit(1)` where some were not moved."""
    if isinstance(meant, Selector):
        _by_selector(database, meant, move, mover)
    else:
        _by_id(database, meant, move, mover)


def _by_id(database: "Operator", ids: list[int], move: Move, mover: Mover) -> None:
    said = database.standing if move.dry_run else mover
    results = [one for page in _paged(ids) for one in said(page)]
    counts = Counter(one.became for one in results)
    if move.json:
        print_json({"dry_run": move.dry_run, "notifications": results, "counts": counts})
    else:
        for one in results:
            print_line(f"{one.id}: {_told(one.became, move)}")
    if not move.dry_run:
        _exit(counts, move)


def _told(became: str, move: Move) -> str:
    """A refusal must not read like success: `11: delivered` is no answer to `cancel 11`."""
    if move.dry_run or became in move.done:
        return became.replace("_", " ")
    why = NOT_MOVED.get(became) or f"it is {became.replace('_', ' ')}"
    return f"not moved: {why}"


def _by_selector(database: "Operator", selector: Selector, move: Move, mover: Mover) -> None:
    if move.dry_run or not move.yes:
        count = sum(len(page) for page in database.pages(selector))
        if move.dry_run:
            return _say_dry(count, move)
        selecting.confirm(move.verb, count)
    counts = _all_pages(database.pages(selector), move, mover)
    if move.json:
        print_json({"dry_run": False, "counts": counts})
    else:
        print_line(_in_words(counts) or f"nothing to {move.verb}")
    return _exit(counts, move)


def _all_pages(pages: Iterable[list[int]], move: Move, mover: Mover) -> Counter[str]:
    counts: Counter[str] = Counter()
    try:
        for page in pages:
            counts.update(one.became for one in mover(page))
    except OperatorError:
        if counts:
            print_trouble(
                f"stopped after {_in_words(counts)}; the same command again goes on from there"
            )
        raise
    return counts


def _say_dry(count: int, move: Move) -> None:
    if move.json:
        print_json({"dry_run": True, "would": move.verb, "count": count})
    else:
        print_line(f"would {move.verb} {count}")


def _exit(counts: Counter[str], move: Move) -> None:
    if set(counts) - move.done:
        raise typer.Exit(ExitCode.REFUSED)


def _paged(ids: Sequence[int]) -> Iterable[list[int]]:
    return (list(ids[start : start + ID_PAGE]) for start in range(0, len(ids), ID_PAGE))


def _in_words(counts: Counter[str]) -> str:
    return ", ".join(
        f"{count} {became.replace('_', ' ')}" for became, count in sorted(counts.items())
    )
