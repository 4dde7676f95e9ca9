"""The story of one notification in plain English: what happened, what is in doubt and why, what happens next."""

from msgspec import Struct

from fencepost.core.asking import ASKED_NOT_THERE
from fencepost.core.inspection import AttemptRecord, EvidenceRecord, Inspection
from fencepost.core.moment import Moment
from fencepost.core.notification import AttemptOutcome, Kind
from fencepost.core.prospect import next_step, standing
from fencepost.core.reason import RECONCILED
from fencepost.core.timeline import because, holder, plain, timeline

CLEARING = frozenset({AttemptOutcome.REJECTED, AttemptOutcome.FAILED, AttemptOutcome.NOT_SENT})


class Explanation(Struct, frozen=True, kw_only=True):
    standing: str
    timeline: tuple[Moment, ...]
    doubts: tuple[str, ...]
    next: str


def explain(seen: Inspection) -> Explanation:
    """Pure: the same facts, the same words."""
    return Explanation(
        standing=standing(seen),
        timeline=timeline(seen),
        doubts=tuple(why_doubtful(attempt) + _since(seen, attempt) for attempt in doubtful(seen)),
        next=next_step(seen),
    )


def doubtful(seen: Inspection) -> tuple[AttemptRecord, ...]:
    """Attempts whose outcome is unknown and about which no evidence says that they were not delivered.

    Evidence of delivery anywhere ends all doubt (DESIGN: doubt and evidence)."""
    if any(fact.outcome is AttemptOutcome.DELIVERED for fact in seen.evidence):
        return ()
    return tuple(
        attempt
        for attempt in seen.attempts
        if attempt.outcome is AttemptOutcome.UNCERTAIN
        and not any(_clears(fact, attempt) for fact in seen.evidence)
    )


def why_doubtful(attempt: AttemptRecord) -> str:
    """Why nobody knows what came of it."""
    named = f"attempt {attempt.fence}"
    if attempt.taken_over and attempt.run is None:
        return f"{named}: put in doubt{because(attempt.detail)}"
    if attempt.taken_over:
        who = holder(attempt.run, attempt.invocation)
        return f"{named}: {who} held it and never said what came of it; it may have been sent"
    return f"{named}: the request left and no full answer came back{because(plain(attempt.detail))}"


def _since(seen: Inspection, doubted: AttemptRecord) -> str:
    """Doubt about an earlier attempt outlives the delivery by a later one, unless the provider was asked."""
    if seen.closed is None or seen.closed.kind is not Kind.DELIVERED:
        return ""
    if seen.closed.reason == RECONCILED:
        return "; the provider was asked, and has it"
    if any(_asked_before(attempt, doubted) for attempt in seen.attempts):
        return "; the provider was asked before it was sent again, and did not have it"
    return (
        "; it was sent again and delivered: if this one arrived too, it came twice, "
        "unless its provider drops or replaces a repeat"
    )


def _asked_before(attempt: AttemptRecord, doubted: AttemptRecord) -> bool:
    return attempt.fence > doubted.fence and attempt.detail == ASKED_NOT_THERE


def _clears(fact: EvidenceRecord, attempt: AttemptRecord) -> bool:
    same = fact.fence == attempt.fence and fact.run in (attempt.run, None)
    return same and fact.outcome in CLEARING
