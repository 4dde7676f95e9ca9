"""What goes by itself, and what an operator may let go: answers of `prune`."""

from msgspec import Struct


class Pruned(Struct, frozen=True, kw_only=True):
    """One step of a run. `more`: its limit ended it, not the lack of old rows."""

    journal: int
    runs: int
    events: int = 0  # of unregistered recipients
    commands: int = 0
    more: bool


class Prunable(Struct, frozen=True, kw_only=True):
    """Rows that are older than they are kept. `strays`: journal rows of runs that are not here."""

    journal: int = 0
    runs: int = 0
    events: int = 0
    commands: int = 0
    strays: int = 0


class ClosedPage(Struct, frozen=True, kw_only=True):
    """A page of closed notifications: those that went (or would), and what went with them."""

    notifications: int
    attempts: int
    evidence: int
    operations: int
    kept_for_key: int  # old enough, but the dedupe key is still promised
    after_id: int | None
    more: bool


class Kept(Struct, frozen=True, kw_only=True):
    """How long in seconds: journal and runs from their end, dedupe keys from enqueue on."""

    journal: float
    dedupe_keys: float
