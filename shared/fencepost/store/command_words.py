"""Rows and facts of a command as the arguments of the functions in the database."""

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.core.callback import Callback
from fencepost.core.command import Evidence
from fencepost.core.exchange import Facts
from fencepost.store.new_notification import NewNotification
from fencepost.store.words import clean

COLUMNS = (
    "channel",
    "recipient",
    "payload",
    "due_at",
    "delay",
    "expires_at",
    "ttl",
    "priority",
    "dedupe_key",
    "on_uncertain",
    "replay_of",
)
Numbered = Sequence[tuple[int, Mapping[str, Any]]]


def rows(good: Numbered, bad: Sequence[tuple[int, str]]) -> tuple[dict[str, Any], dict[int, str]]:
    """Columns and faults; and the faults by number: those that were given, and those that can be seen here."""
    new = [(number, NewNotification(**words)) for number, words in good]
    faults = {number: fault for number, row in new if (fault := row.fault())} | dict(bad)
    sound = [(number, row.columns()) for number, row in new if number not in faults]
    columns = zip(*(values for _, values in sound), strict=True) if sound else [()] * len(COLUMNS)
    words = {
        "bad_lines": list(faults),
        "faults": [clean(fault) for fault in faults.values()],
        "lines": [number for number, _ in sound],
        **{name: list(column) for name, column in zip(COLUMNS, columns, strict=True)},
    }
    return words, faults


def evidence(evidence: Evidence) -> dict[str, Any]:
    facts = evidence.facts
    return {
        "run": evidence.run,
        "ids": [fact.held.id for fact in facts],
        "fences": [fact.held.fence for fact in facts],
        "outcomes": [fact.outcome.value for fact in facts],
        "references": [clean(fact.facts.reference) for fact in facts],
        "details": [clean(_detail(fact.facts)) for fact in facts],
        "gone": [fact.gone for fact in facts],
    }


def callbacks(callbacks: Sequence[Callback]) -> dict[str, Any]:
    gone = [each.gone for each in callbacks]
    return {
        "ids": [each.held.id for each in callbacks],
        "fences": [each.held.fence for each in callbacks],
        "keys": [each.key for each in callbacks],
        "outcomes": [each.outcome and each.outcome.value for each in callbacks],
        "references": [clean(each.reference) for each in callbacks],
        "details": [clean(each.detail) for each in callbacks],
        "gone": [each is not None for each in gone],
        "gone_ats": [each and each.gone_at for each in gone],
        "guarded": [each is not None and each.guarded for each in gone],
    }


def _detail(facts: Facts) -> str | None:
    """The ledger of evidence has no columns for them."""
    known = [facts.phase, facts.status, facts.detail]
    return " ".join(str(one) for one in known if one is not None) or None
