"""What happened to one notification, told line by line."""

from typing import assert_never

from fencepost.core import reason as code_of
from fencepost.core.exchange import Verdict
from fencepost.core.inspection import (
    AttemptRecord,
    EvidenceRecord,
    Inspection,
    JournalRecord,
    OperationRecord,
)
from fencepost.core.moment import Moment
from fencepost.core.notification import AttemptOutcome
from fencepost.core.reply import Phase
from fencepost.core.unsent import given_back

RECEIPT = (
    "receipt: "  # before the detail of one that was asked for (senders of the kind `Receipts`)
)

# Codes the store writes before what a retried attempt came to.
TOLD_BY_THE_OUTCOME = frozenset(
    {
        code_of.FAILED,
        code_of.HELD,
        code_of.NOT_SENT,
        code_of.REJECTED,
        code_of.THROTTLED,
        code_of.UNCERTAIN,
    }
)


def timeline(seen: Inspection) -> tuple[Moment, ...]:
    """Oldest first. Instants are ISO text in UTC, so text order is time order; ties keep cause before effect."""
    moments = [
        *_enqueued(seen),
        *given_back(seen),
        *(moment for attempt in seen.attempts for moment in _attempt(attempt)),
        *_still_held(seen),
        *(Moment(line.at, text) for line in seen.journal if (text := _exchange(seen, line))),
        *(Moment(done.at, _operation(done)) for done in seen.operations if done.what == "resolve"),
        *(Moment(fact.at, _fact(fact)) for fact in seen.evidence),
        *(Moment(done.at, _operation(done)) for done in seen.operations if _is_move(done)),
        *_closed(seen),
        *(Moment(done.at, _operation(done)) for done in seen.operations if _is_turn(done)),
    ]
    return tuple(sorted(moments, key=lambda moment: moment.at))


def _enqueued(seen: Inspection) -> list[Moment]:
    if seen.created_at is None:
        return []
    copy = f", a replay of {seen.replay_of}" if seen.replay_of is not None else ""
    later = f", due {seen.due_at}" if seen.due_at and seen.due_at > seen.created_at else ""
    return [Moment(seen.created_at, f"enqueued on channel {seen.channel.name}{copy}{later}")]


def _attempt(attempt: AttemptRecord) -> list[Moment]:
    named = f"attempt {attempt.fence}"
    moments = [Moment(attempt.at, f"{named}: {came_back(attempt)}")]
    if attempt.claimed_at is not None and attempt.run is not None:
        who = holder(attempt.run, attempt.invocation)
        moments.insert(0, Moment(attempt.claimed_at, f"{named}: claimed by {who}"))
    return moments


def came_back(attempt: AttemptRecord) -> str:
    """What one attempt came to, and how that is known."""
    if attempt.taken_over and attempt.run is None:
        return f"put in doubt{because(attempt.detail)}"
    if attempt.taken_over:
        return f"{holder(attempt.run, attempt.invocation)} did not come back; taken over, in doubt"
    code, _, why = (attempt.detail or "").partition(": ")
    if code == code_of.NO_ANSWER:
        return (
            f"the provider was asked what became of the one before, and could not say{because(why)}"
        )
    return f"{_meaning(attempt)}{_answer(attempt)}{because(plain(attempt.detail))}"


def plain(detail: str | None) -> str | None:
    """Without the worker's code in front: the sentence around it has said that already."""
    code, _, rest = (detail or "").partition(": ")
    return rest if code in TOLD_BY_THE_OUTCOME else detail


def _meaning(attempt: AttemptRecord) -> str:
    match attempt.outcome:
        case AttemptOutcome.DELIVERED:
            return "delivered"
        case AttemptOutcome.REJECTED:
            return "refused for good"
        case AttemptOutcome.FAILED:
            return "refused for now"
        case AttemptOutcome.NOT_SENT if attempt.status is not None:
            return "turned away (does not count as an attempt)"
        case AttemptOutcome.NOT_SENT:
            return "not sent (does not count as an attempt)"
        case AttemptOutcome.UNCERTAIN:
            return "in doubt: it may have been accepted"
        case AttemptOutcome.HELD:
            return "nothing was sent: it is in doubt, and held"
        case _:
            assert_never(attempt.outcome)


def _answer(attempt: AttemptRecord) -> str:
    facts = []
    if attempt.status is not None:
        facts.append(f"status {attempt.status}")
    elif attempt.phase is Phase.NOT_SENT:
        facts.append("nothing had left")
    elif attempt.phase is Phase.UNCERTAIN:
        facts.append("no full answer")
    if attempt.reference:
        facts.append(f"provider's reference {attempt.reference}")
    if attempt.took_ms is not None:
        facts.append(f"{attempt.took_ms} ms")
    return f" ({', '.join(facts)})" if facts else ""


def _still_held(seen: Inspection) -> list[Moment]:
    """A claim that has no attempt row yet: it is being sent now, or its run is gone."""
    row = seen.open
    if row is None or row.run is None or row.claimed_at is None:
        return []
    return [
        Moment(row.claimed_at, f"attempt {row.fence}: claimed by {holder(row.run, row.invocation)}")
    ]


def _exchange(seen: Inspection, line: JournalRecord) -> str:
    """Only what the attempts do not tell already: lost leases and words that came too late."""
    who = f"run {line.run[:8]}"
    if line.lost:
        return f"{who} asked to renew its lease and had lost it"
    match line.verdict:
        case Verdict.LATE:
            return f"{who} spoke too late about attempt {line.fence}: {_left(seen, line)}"
        case Verdict.UNKNOWN:
            left = _left(seen, line)
            return f"{who} spoke of attempt {line.fence}, which nobody knows: {left}"
        case Verdict.CONFLICT:
            return f"{who} reported a second delivery: a conflict"
        case Verdict.APPLIED | Verdict.REPEATED | None:
            return ""
        case _:
            assert_never(line.verdict)


def _left(seen: Inspection, line: JournalRecord) -> str:
    """A word that is late is evidence only if it knew what came of its attempt (uncertain and held are no news)."""
    if any(
        (fact.source, fact.run, fact.fence) == ("late", line.run, line.fence)
        for fact in seen.evidence
    ):
        return "what it knew was kept as evidence"
    return "it knew nothing that counts as evidence, and changed nothing"


def _fact(fact: EvidenceRecord) -> str:
    source = {"late": "the run, too late for its lease", "operator": "an operator"}.get(
        fact.source, f"a {fact.source}"
    )
    detail = (fact.detail or "").removeprefix(RECEIPT)
    if detail != (fact.detail or ""):
        source = "a receipt"
    about = f" about attempt {fact.fence}" if fact.fence else ""
    reference = f" (provider's reference {fact.reference})" if fact.reference else ""
    return f"evidence from {source}{about}: {fact.outcome}{reference}{because(detail)}"


def _operation(done: OperationRecord) -> str:
    by = f" by {done.who}" if done.who else ""
    was = f" (it was {done.was})" if done.was else ""
    return f"{done.what}{by}{was}{because(done.why)}"


def _is_turn(done: OperationRecord) -> bool:
    """Evidence turned a closed one into another kind."""
    return done.what.startswith("close as ")


def _is_move(done: OperationRecord) -> bool:
    return done.what != "resolve" and not _is_turn(done)


def turns(seen: Inspection) -> list[OperationRecord]:
    """What evidence made of it since it was closed last, oldest first."""
    if seen.closed is None:
        return []
    since = seen.closed.at
    return [done for done in seen.operations if _is_turn(done) and done.at >= since]


def _closed(seen: Inspection) -> list[Moment]:
    """As what it was closed at first: what evidence made of it since is told at its own time."""
    if seen.closed is None:
        return []
    kind, reason = str(seen.closed.kind), seen.closed.reason
    if (reason or "").startswith("receipt_"):
        reason = code_of.RECEIPT_DUE  # what became of it since is told as evidence
    if turned := turns(seen):
        kind, _, reason = (turned[0].was or "").partition(": ")
    return [
        Moment(seen.closed.at, f"closed as {kind}{because(reason if reason != kind else None)}")
    ]


def holder(run: str | None, invocation: str | None) -> str:
    named = f"run {run[:8]}" if run else "a run nobody knows"
    return f"{named} (invocation {invocation})" if invocation else named


def because(text: str | None) -> str:
    return f": {' '.join(text.split())}" if text else ""
