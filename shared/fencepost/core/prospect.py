"""Where one notification stands, and what happens next and when: the worker's rules, told ahead."""

from typing import assert_never

from fencepost.core import reason
from fencepost.core.duration import spoken
from fencepost.core.inspection import ChannelStanding, ClosedStanding, Inspection, OpenStanding
from fencepost.core.notification import AttemptOutcome, Kind, OnUncertain
from fencepost.core.timeline import turns

ASKED = "its provider accepted it, and is asked what became of it"
RECEIPTS = {  # by the reason of one that was delivered
    reason.RECEIPT_DUE: ASKED,
    reason.RECEIPT_LATE: ASKED,
    reason.RECEIPT_LAST: ASKED,
    reason.RECEIPT_MISSING: "nothing: its provider accepted it, and never told what became of it",
    reason.RECEIPT_REFUSED: "nothing: its provider accepted it, and told later that it was not delivered",
    reason.RECEIPT_UNKNOWN: "nothing: its provider accepted it, and does not know what became of it",
}


def standing(seen: Inspection) -> str:
    """One line: open or closed, and in whose hands."""
    if seen.closed is not None:
        turned = turns(seen)
        at = turned[-1].at if turned else seen.closed.at
        return f"{seen.closed.kind}: closed at {at}{_reason(seen.closed.reason)}"
    if seen.open is None:
        return "neither open nor closed: its row was removed by hand, which no function of the schema does"
    return f"open: {_hands(seen.open)}{', in doubt' if seen.open.doubt else ''}"


def next_step(seen: Inspection) -> str:
    """What happens next if nobody steps in; the first rule that fits wins, as in a run."""
    if seen.closed is not None:
        return _after_closing(seen, seen.closed)
    if seen.open is None:
        return "nothing: no run can find it"
    row = seen.open
    if row.run is not None and (row.lease_left_seconds or 0) > 0:
        return (
            f"its run settles it, or its lease ends in {spoken(row.lease_left_seconds or 0)} and the next run "
            f"takes it over in doubt; then {_doubt_policy(seen)}"
        )
    return f"{_when(seen.channel, row)} {_at_claim(seen, row)}"


def _hands(row: OpenStanding) -> str:
    if row.run is None:
        return "waiting, nobody holds it"
    left = row.lease_left_seconds or 0
    if left > 0:
        return f"leased by run {row.run[:8]} for another {spoken(left)}"
    return f"run {row.run[:8]} held it and its lease ran out {spoken(left)} ago"


def _when(channel: ChannelStanding, row: OpenStanding) -> str:
    """When a claim can find it."""
    if channel.paused:
        reason = f" ({channel.pause_reason})" if channel.pause_reason else ""
        if channel.paused_for_seconds is None:
            return f"nothing until somebody resumes channel {channel.name}, which is paused{reason}; then"
        return f"nothing for {spoken(channel.paused_for_seconds)}: channel {channel.name} is paused{reason}; then"
    if channel.skip_reason:
        return (
            f"nothing until a worker can send on channel {channel.name}: since {channel.skipped_at} "
            f"none that looked could ({channel.skip_reason}); then"
        )
    wait = row.due_in_seconds or 0
    return f"in {spoken(wait)}" if wait > 0 else "at the next tick"


def _at_claim(seen: Inspection, row: OpenStanding) -> str:
    """What the run that claims it does with it: the order of `core/doubt.py`."""
    doubtful = row.doubt or row.run is not None
    policy = seen.channel.policy
    if any(fact.outcome is AttemptOutcome.DELIVERED for fact in seen.evidence):
        return "a run closes it as delivered without sending: there is evidence of delivery"
    if _expired_by_then(seen, row):
        return "a run closes it as expired without sending"
    if row.interruptions + (row.run is not None) >= policy.interruptions_max:
        return f"a run parks it as dead without sending: {policy.interruptions_max} runs died holding it (poison)"
    if row.attempts >= policy.attempts_max:
        how = "uncertain, because it is in doubt," if doubtful else "dead"
        return f"a run parks it as {how} without sending: its {policy.attempts_max} attempts are used up"
    if doubtful:
        return f"a run takes it up in doubt: {_doubt_policy(seen)}"
    return f"a run sends it ({row.attempts} of {policy.attempts_max} attempts used up)"


def _expired_by_then(seen: Inspection, row: OpenStanding) -> bool:
    """Before it may be claimed, paused channel included."""
    if seen.expires_in_seconds is None:
        return False
    return seen.expires_in_seconds <= max(
        row.due_in_seconds or 0, seen.channel.paused_for_seconds or 0, 0
    )


def _doubt_policy(seen: Inspection) -> str:
    if seen.open is not None and seen.open.resend:
        return (
            "it is sent again with the same idempotency key, as an operator ordered, "
            "whether or not the provider still knows the key"
        )
    chosen = seen.on_uncertain or seen.channel.on_uncertain
    match chosen:
        case OnUncertain.RESEND:
            return (
                "it is sent again with the same idempotency key; by a provider that drops repeats for a while "
                "only within that while, and held after that"
            )
        case OnUncertain.HOLD:
            return "it is not sent again but closed as uncertain, for an operator or for evidence"
        case OnUncertain.RECONCILE:
            return "the provider is asked first what became of it"
        case _:
            assert_never(chosen)


def _after_closing(seen: Inspection, closed: ClosedStanding) -> str:
    match closed.kind:
        case Kind.DELIVERED:
            return RECEIPTS.get(closed.reason or "", "nothing: it is delivered")
        case Kind.DEAD:
            return f"nothing, until somebody sends it again: fencepost redrive {seen.id}"
        case Kind.UNCERTAIN:
            return (
                "nothing, until evidence comes or somebody decides: "
                f"fencepost uncertain resolve {seen.id} --delivered, --not-delivered, --dead or --resend, with --why"
            )
        case Kind.EXPIRED | Kind.CANCELLED:
            return "nothing (evidence of delivery would still turn it into delivered)"
        case _:
            assert_never(closed.kind)


def _reason(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
