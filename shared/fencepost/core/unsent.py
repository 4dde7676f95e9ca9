"""Claims that left nothing but a raised fence: a run held the notification and gave it back unsent.

Nobody wrote down which run that was: an index from a notification to the exchanges would cost every exchange.
"""

from fencepost.core.inspection import Inspection
from fencepost.core.moment import Moment

REOPENS = frozenset({"reopen", "redrive", "redrive to resend"})
RAISES = REOPENS | {"cancel", "quarantine"}


def given_back(seen: Inspection) -> list[Moment]:
    """One line for each gap between fences that are accounted for, at the time of the next such fence."""
    now = seen.open or seen.closed
    if now is None:
        return []
    moments, last = [], 0
    for fence, at in sorted(accounted(seen).items()):
        if fence > last + 1:
            moments.append(Moment(at, _told("then", last + 1, fence - 1)))
        last = fence
    if now.fence > last:
        moments.append(Moment(seen.now, _told("now", last + 1, now.fence)))
    return moments


def accounted(seen: Inspection) -> dict[int, str]:
    """When each fence was taken about which something is told: by an attempt, a move, the closing, a live claim."""
    known: dict[int, str] = {}
    for done in seen.operations:
        if done.what in RAISES:
            known[done.fence] = done.at
        if done.what in REOPENS:  # it was closed at the fence before
            known.setdefault(done.fence - 1, done.at)
    for attempt in seen.attempts:
        if attempt.fence not in known or attempt.run is not None:
            known[attempt.fence] = attempt.claimed_at or attempt.at
    if seen.closed is not None:
        known.setdefault(seen.closed.fence, seen.closed.at)
    if seen.open is not None and seen.open.run is not None:
        known.setdefault(seen.open.fence, seen.open.claimed_at or seen.now)
    return known


def _told(when: str, first: int, last: int) -> str:
    which = f"attempt {first}" if first == last else f"attempts {first} to {last}"
    return f"by {when} {which} had been claimed and given back unsent"
