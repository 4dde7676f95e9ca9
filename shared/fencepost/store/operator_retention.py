"""Retention as an operator asks for it: what is old goes in pages, each a transaction of its own."""

from collections.abc import Iterator

from fencepost.core.retention import ClosedPage, Kept, Prunable, Pruned
from fencepost.store.statement import Statements

PAGE_ROWS = 1000
STRAY_ROWS = 10_000  # each page looks at all that is old


class Retention:
    """Over the operator's own connection. Everything raises `OperatorError`; saying anything twice is harmless."""

    def __init__(self, say: Statements) -> None:
        self._say = say

    def kept(self, *, journal: float | None = None, dedupe_keys: float | None = None) -> Kept:
        """How long things are kept, after these were changed. Seconds; None: as it is."""
        params = {"journal": journal, "dedupe_keys": dedupe_keys}
        return self._say.answers("operator_retention", params, Kept)[0]

    def prunable(self) -> Prunable:
        """What `prune` would take. Reads only."""
        return self._say.answers("operator_prunable", {}, Prunable)[0]

    def prune(self) -> Iterator[Prunable]:
        """What is older than it is kept, the journal's strays last. What went, page by page."""
        more = True
        while more:
            page = self._say.answers("prune", {"limit": PAGE_ROWS}, Pruned)[0]
            more = page.more
            yield Prunable(
                journal=page.journal, runs=page.runs, events=page.events, commands=page.commands
            )
        while strays := self._say.value("operator_prune_strays", {"limit": STRAY_ROWS}):
            yield Prunable(strays=strays)

    def prune_closed(self, older_than: float, *, dry: bool = False) -> Iterator[ClosedPage]:
        """Delivered, expired and cancelled notifications closed so many seconds ago, whole, page by page."""
        params = {"older_than": older_than, "after_id": None, "limit": PAGE_ROWS, "dry": dry}
        more = True
        while more:
            page = self._say.answers("operator_prune_closed", params, ClosedPage)[0]
            params, more = {**params, "after_id": page.after_id}, page.more
            yield page
