"""The messages that carry work to Fencepost through a queue: versioned JSON commands.

Version 1 of `evidence` is what a run says of its sends when it cannot reach the database any more:

    {"fencepost": 1, "command": "evidence", "installation": "…", "run": "<uuid>",
     "facts": [{"notification": 1, "fence": 2, "outcome": "delivered", "phase": "answered", "status": 200,
                "reference": "…", "digest": "<hex>", "took_ms": 12, "detail": "…", "unregistered": true}, …]}

Members of a fact that are not known are left out. Saying it twice is harmless: evidence is idempotent.

`drain` asks for a run (core/drain.py); docs/backfill.md tells all commands.
"""

import json
from collections.abc import Sequence
from uuid import UUID

from fencepost.core.notification import RunId
from fencepost.core.step import Unsaid

VERSION = 1
FACTS_MAX = 20  # a message; ten messages of this size stay far below what one SQS batch may weigh
TEXT_MAX = 300  # characters of a reference or a detail


def evidence_messages(installation: str, run: RunId, unsaid: Sequence[Unsaid]) -> tuple[str, ...]:
    """The unsaid words as message bodies, every word in exactly one of them."""
    pages = (unsaid[start : start + FACTS_MAX] for start in range(0, len(unsaid), FACTS_MAX))
    return tuple(_evidence_message(installation, run, page) for page in pages)


def drain_message(id: UUID) -> str:
    """Asks whoever takes it for one run. The command's id makes saying it twice one run."""
    words = {"version": VERSION, "command": "drain", "id": str(id)}
    return json.dumps(words, separators=(",", ":"))


def _evidence_message(installation: str, run: RunId, unsaid: Sequence[Unsaid]) -> str:
    command = {
        "fencepost": VERSION,
        "command": "evidence",
        "installation": installation,
        "run": str(run),
        "facts": [_fact(word) for word in unsaid],
    }
    return json.dumps(command, separators=(",", ":"))  # ASCII: no character a queue would refuse


def _fact(word: Unsaid) -> dict[str, object]:
    facts = word.facts
    known = {
        "notification": word.held.id,
        "fence": word.held.fence,
        "outcome": word.outcome,
        "phase": facts.phase,
        "status": facts.status,
        "reference": _cut(facts.reference),
        "digest": None if facts.digest is None else facts.digest.hex(),
        "took_ms": facts.took_ms,
        "detail": _cut(facts.detail),
        "unregistered": word.gone or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_MAX]
