"""What becomes of a claimed row before anything is sent: doubt, evidence, expiry, poison."""

import math

from msgspec import Struct

from fencepost.core import reason
from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import NO_FACTS, Facts, Word
from fencepost.core.notification import AttemptOutcome, Claimed, Kind, OnUncertain

EVIDENCE_WAIT_MIN_SECONDS = 5.0  # between two looks at a row that waits for a provider's word


class SendIt(Struct, frozen=True):
    """Nothing is in the way."""


class AskProvider(Struct, frozen=True):
    """In doubt, policy `reconcile`: ask before anything else."""


class CloseUnsent(Struct, frozen=True):
    """Close it with this word; nothing is sent at this fence."""

    word: Word


class AwaitEvidence(Struct, frozen=True):
    """In doubt, policy `reconcile`, and the provider tells by itself: give it back for so long."""

    delay_seconds: float


Advice = SendIt | AskProvider | AwaitEvidence | CloseUnsent


def advise(
    claimed: Claimed,
    channel: Channel,
    facility: Facility,
    *,
    elapsed_seconds: float = 0.0,
    margin_seconds: float = 0.0,
) -> Advice:
    """What to do with a row just claimed (or whose turn has come `elapsed_seconds` after the claim).

    A resend must leave `margin_seconds` before the end of the provider's key window.
    """
    if claimed.evidence is AttemptOutcome.DELIVERED:
        return closing(claimed, Kind.DELIVERED, reason.ALREADY_DELIVERED)
    if has_expired(claimed, elapsed_seconds):
        code = reason.EXPIRED_IN_DOUBT if claimed.doubt else reason.EXPIRED
        return closing(claimed, Kind.EXPIRED, code)
    if claimed.interruptions >= channel.policy.interruptions_max:
        return closing(claimed, Kind.DEAD, reason.POISON)
    if claimed.attempts > channel.policy.attempts_max:
        return exhausted(claimed)
    if claimed.doubt:
        return clear_doubt(
            claimed,
            channel,
            facility,
            elapsed_seconds=elapsed_seconds,
            margin_seconds=margin_seconds,
        )
    return SendIt()


def clear_doubt(
    claimed: Claimed,
    channel: Channel,
    facility: Facility,
    *,
    elapsed_seconds: float,
    margin_seconds: float,
) -> Advice:
    """The policy for a row in doubt, `elapsed_seconds` after the claim."""
    wait = elapsed_seconds + margin_seconds
    match policy_of(claimed, channel):
        case OnUncertain.RESEND if may_resend(claimed, facility, wait_seconds=wait):
            return SendIt()
        case OnUncertain.RESEND:
            return held(claimed, reason.WINDOW_PASSED)
        case OnUncertain.RECONCILE if facility.can_be_asked:
            return AskProvider()
        case OnUncertain.RECONCILE if (within := facility.evidence_within_seconds) is not None:
            return await_evidence(claimed, within, elapsed_seconds=elapsed_seconds)
        case OnUncertain.RECONCILE:
            return held(claimed, reason.CANNOT_BE_ASKED)
        case OnUncertain.HOLD:
            return held(claimed, reason.HELD)


def await_evidence(
    claimed: Claimed, within_seconds: float, *, elapsed_seconds: float
) -> AwaitEvidence | CloseUnsent:
    """Wait as long again as it was waited already, until the provider's time is over; then it is held.

    Silence is no proof: it is a rule that decides, and the row says which. An unknown age is taken as too old.
    """
    known = claimed.doubt_age_seconds
    age = math.inf if known is None else max(known, 0.0) + elapsed_seconds
    if age < within_seconds:
        return AwaitEvidence(min(max(age, EVIDENCE_WAIT_MIN_SECONDS), within_seconds - age))
    why = f"the provider tells within {within_seconds:g} s of a send, and has told nothing"
    return held(claimed, reason.NO_EVIDENCE, why)


def policy_of(claimed: Claimed, channel: Channel) -> OnUncertain:
    """An operator's order over the notification's own word over its channel's."""
    if claimed.resend_ordered:
        return OnUncertain.RESEND
    return claimed.on_uncertain or channel.on_uncertain


def may_resend(claimed: Claimed, facility: Facility, *, wait_seconds: float) -> bool:
    """Whether a repeat is what its owner agreed to: dropped by its key, or collapsed, or accepted as a duplicate.

    A provider that remembers keys must still remember this one; an unknown first attempt is taken as too old.
    Whoever ordered it knew that; the order holds until the row closes, and `attempts_max` bounds it.
    """
    if claimed.resend_ordered or facility.collapses or facility.deduplicates_for_seconds is None:
        return True  # shown once; or whoever chose `resend` without a key chose the duplicate
    return within_key_window(claimed, facility, wait_seconds=wait_seconds)


def within_key_window(claimed: Claimed, facility: Facility, *, wait_seconds: float) -> bool:
    """Whether the provider still remembers the key of the first attempt `wait_seconds` after the claim."""
    window, age = facility.deduplicates_for_seconds, claimed.first_attempt_age_seconds
    return window is not None and age is not None and age + wait_seconds < window


def has_expired(claimed: Claimed, elapsed_seconds: float) -> bool:
    return claimed.expires_in_seconds is not None and claimed.expires_in_seconds <= elapsed_seconds


def exhausted(claimed: Claimed) -> CloseUnsent:
    """No attempt is left: dead; but what is in doubt is not called dead."""
    if claimed.doubt:
        return held(claimed, reason.ATTEMPTS_EXHAUSTED)
    return closing(claimed, Kind.DEAD, reason.ATTEMPTS_EXHAUSTED)


def closing(claimed: Claimed, kind: Kind, code: str) -> CloseUnsent:
    return CloseUnsent(Word(id=claimed.id, fence=claimed.fence, kind=kind, reason=code))


def held(claimed: Claimed, code: str, why: str | None = None) -> CloseUnsent:
    return CloseUnsent(
        Word(
            id=claimed.id,
            fence=claimed.fence,
            outcome=AttemptOutcome.HELD,
            kind=Kind.UNCERTAIN,
            reason=code,
            facts=NO_FACTS if why is None else Facts(detail=why),
        )
    )
