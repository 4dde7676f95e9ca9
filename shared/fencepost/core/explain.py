"""The story of one notification in plain English: what happened, what is in doubt and why, what happens next."""

from dataclasses import dataclass

from fencepost.core.inspection import AttemptRecord, EvidenceRecord, Inspection
from fencepost.core.moment import Moment
from fencepost.core.notification import AttemptOutcome, Kind
from fencepost.core.prospect import next_step, standing
from fencepost.core.timeline import because, holder, plain, timeline

CLEARING = frozenset({AttemptOutcome.REJECTED, AttemptOutcome.FAILED, AttemptOutcome.NOT_SENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    standing: str
    timeline: tuple[Moment, ...]
    doubts: tuple[str, ...]
    next: str


def explain(seen: Inspection) -> Explanation:
    """Pure: the same facts, the same words."""
    return Explanation(
        standing=standing(seen),
        timeline=timeline(seen),
        doubts=tuple(why_doubtful(attempt) + _twice(seen) for attempt in doubtful(seen)),
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


def _twice(seen: Inspection) -> str:
    """Doubt about an earlier attempt outlives the delivery by a later one."""
    if seen.closed is None or seen.closed.kind is not Kind.DELIVERED:
        return ""
    return "; it arrived twice unless the provider dropped the repeat by its key"


def _clears(fact: EvidenceRecord, attempt: AttemptRecord) -> bool:
    same = fact.fence == attempt.fence and fact.run in (attempt.run, None)
    return same and fact.outcome in CLEARING
