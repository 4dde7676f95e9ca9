"""What becomes of a row by the outcome of its send: the word that settles it, and what the channel's gate learns.

Pure: chance comes in as `roll` in [0, 1), time as durations.
"""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core import doubt, reason
from fencepost.core.backoff import JITTER_SHARE, refunds, retry_after_floor, wait_seconds
from fencepost.core.channel import AttemptPolicy, Channel, Facility
from fencepost.core.exchange import Facts, GateWord, Word
from fencepost.core.gone import gone_words
from fencepost.core.notification import AttemptOutcome, Claimed, Kind, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.repeat import OTHER_BYTES

CREDENTIAL_PAUSE_SECONDS = 900.0  # then a few rows try again; an operator's `resume` is quicker
THROTTLE_PAUSE_MIN_SECONDS = 1.0  # a throttled channel is never open again at once


class Transition(Struct, frozen=True):
    """A word for the row; and a word for its channel's gate where the outcome concerns the channel."""

    word: Word
    gate: GateWord | None = None


class Sent(Struct, frozen=True, kw_only=True):
    """One ended send with all that its meaning depends on. `elapsed_seconds`: since the claim was asked for."""

    claimed: Claimed
    channel: Channel
    facility: Facility
    facts: Facts
    roll: float
    elapsed_seconds: float = 0.0
    margin_seconds: float = 0.0  # what the next send needs of the provider's key window

    @property
    def policy(self) -> AttemptPolicy:
        return self.channel.policy


def transition(sent: Sent, outcome: Outcome) -> Transition:
    """The one table: outcome → what becomes of the row and of its channel."""
    match outcome:
        case Delivered():
            return _delivered(sent, outcome)
        case Failed():
            return _failed(sent, outcome)
        case Throttled():
            return _throttled(sent, outcome)
        case Rejected(reason=why) if why == OTHER_BYTES:
            return _other_bytes(sent, why)
        case Rejected(reason=why):
            return _closed(sent, AttemptOutcome.REJECTED, Kind.DEAD, reason.REJECTED, why)
        case Unregistered():
            return _unregistered(sent, outcome)
        case CredentialFailure(reason=why):
            return _credentials(sent, why)
        case NotSent(reason=why):
            return _refunded(sent, None, reason.NOT_SENT, why)
        case Uncertain():
            return _uncertain(sent, outcome)
        case _:
            assert_never(outcome)


def _delivered(sent: Sent, outcome: Delivered) -> Transition:
    known = sent
    if outcome.reference and not sent.facts.reference:
        known = replace(sent, facts=replace(sent.facts, reference=outcome.reference))
    code = reason.RECEIPT_DUE if outcome.receipt_due else None
    return Transition(_word(known, AttemptOutcome.DELIVERED, kind=Kind.DELIVERED, code=code))


def _unregistered(sent: Sent, outcome: Unregistered) -> Transition:
    """Dead. The database makes an event of it, for producers; what it is worth is judged there."""
    known = replace(sent, facts=replace(sent.facts, reference=gone_words(outcome)))
    code = reason.UNREGISTERED
    return _closed(known, AttemptOutcome.REJECTED, Kind.DEAD, code, outcome.reason)


def _failed(sent: Sent, outcome: Failed) -> Transition:
    """Costs the attempt. The last one closes: dead, or uncertain where an earlier attempt is still in doubt."""
    if sent.claimed.attempts >= sent.policy.attempts_max:
        kind = Kind.UNCERTAIN if sent.claimed.doubt else Kind.DEAD
        return _closed(sent, AttemptOutcome.FAILED, kind, reason.ATTEMPTS_EXHAUSTED, outcome.reason)
    delay = _retry_delay(sent, outcome.retry_after_seconds)
    return _open(sent, AttemptOutcome.FAILED, delay, reason.FAILED, outcome.reason)


def _throttled(sent: Sent, outcome: Throttled) -> Transition:
    settled = _refunded(sent, outcome.retry_after_seconds, reason.THROTTLED, outcome.reason)
    if not outcome.channel_wide:
        return settled
    pause = max(_pause_seconds(sent, outcome.retry_after_seconds), THROTTLE_PAUSE_MIN_SECONDS)
    return replace(settled, gate=_gate_word(sent, pause, reason.THROTTLED))


def _credentials(sent: Sent, why: str) -> Transition:
    """The channel's fault, not the row's: it waits as long as that takes (its expiry still counts)."""
    delay = _defer_delay(sent, None)
    settled = _open(sent, AttemptOutcome.NOT_SENT, delay, reason.CREDENTIALS, why)
    gate = _gate_word(sent, CREDENTIAL_PAUSE_SECONDS, f"{reason.CREDENTIALS}: {why}")
    return replace(settled, gate=gate)


def _refunded(sent: Sent, retry_after: float | None, code: str, why: str) -> Transition:
    """Nothing was accepted: the attempt comes back, the waits grow, and the maximum age ends it."""
    delay = _defer_delay(sent, retry_after)
    if sent.claimed.age_seconds + sent.elapsed_seconds < sent.policy.age_max_seconds:
        return _open(sent, AttemptOutcome.NOT_SENT, delay, code, why)
    kind = Kind.UNCERTAIN if sent.claimed.doubt else Kind.DEAD
    return _closed(sent, AttemptOutcome.NOT_SENT, kind, reason.TOO_OLD, why)


def _other_bytes(sent: Sent, why: str) -> Transition:
    """G7: refused before it left. In doubt it is held; otherwise it is known not to be delivered: dead."""
    if sent.claimed.doubt:
        return _closed(sent, AttemptOutcome.HELD, Kind.UNCERTAIN, reason.OTHER_BYTES, why)
    return _closed(sent, AttemptOutcome.NOT_SENT, Kind.DEAD, reason.OTHER_BYTES, why)


def _uncertain(sent: Sent, outcome: Uncertain) -> Transition:
    """It may have been accepted: what the policy lets the next claim do decides whether there is one."""
    if sent.claimed.attempts >= sent.policy.attempts_max:
        code = reason.ATTEMPTS_EXHAUSTED
        return _closed(sent, AttemptOutcome.UNCERTAIN, Kind.UNCERTAIN, code, outcome.reason)
    delay = _retry_delay(sent, outcome.retry_after_seconds)
    if (why_not := _why_not_again(sent, delay)) is not None:
        return _closed(sent, AttemptOutcome.UNCERTAIN, Kind.UNCERTAIN, why_not, outcome.reason)
    return _open(sent, AttemptOutcome.UNCERTAIN, delay, reason.UNCERTAIN, outcome.reason)


def _why_not_again(sent: Sent, delay_seconds: float) -> str | None:
    """None: another claim after the delay may do something about the doubt."""
    known = sent.claimed.first_attempt_age_seconds
    first = replace(sent.claimed, first_attempt_age_seconds=known if known is not None else 0.0)
    wait = sent.elapsed_seconds + delay_seconds + sent.margin_seconds
    match doubt.policy_of(sent.claimed, sent.channel):
        case OnUncertain.RESEND if doubt.may_resend(first, sent.facility, wait_seconds=wait):
            return None
        case OnUncertain.RESEND:
            return reason.WINDOW_PASSED
        case OnUncertain.RECONCILE if sent.facility.reconciles:
            return None
        case OnUncertain.RECONCILE:
            return reason.CANNOT_BE_ASKED
        case OnUncertain.HOLD:
            return reason.HELD


def _retry_delay(sent: Sent, retry_after: float | None) -> float:
    return wait_seconds(
        sent.claimed.attempts,
        retry_after_seconds=retry_after,
        policy=sent.policy,
        roll=sent.roll,
    )


def _defer_delay(sent: Sent, retry_after: float | None) -> float:
    return wait_seconds(
        refunds(sent.claimed),
        retry_after_seconds=retry_after,
        policy=sent.policy,
        roll=sent.roll,
    )


def _pause_seconds(sent: Sent, retry_after: float | None) -> float:
    """The channel waits as the provider wished; without a wish as the row does."""
    floor = retry_after_floor(retry_after, max_seconds=sent.policy.retry_after_max_seconds)
    if floor is None:
        return _defer_delay(sent, None)
    return floor * (1.0 + JITTER_SHARE * sent.roll)


def _gate_word(sent: Sent, seconds: float, why: str) -> GateWord:
    return GateWord(
        channel=sent.channel.id,
        revision=sent.channel.revision,
        pause_seconds=seconds,
        reason=why,
    )


def _open(
    sent: Sent, outcome: AttemptOutcome, delay_seconds: float, code: str, why: str
) -> Transition:
    word = _word(sent, outcome, code=code, why=why)
    return Transition(replace(word, delay_seconds=delay_seconds))


def _closed(sent: Sent, outcome: AttemptOutcome, kind: Kind, code: str, why: str) -> Transition:
    return Transition(_word(sent, outcome, kind=kind, code=code, why=why))


def _word(
    sent: Sent,
    outcome: AttemptOutcome,
    *,
    kind: Kind | None = None,
    code: str | None = None,
    why: str | None = None,
) -> Word:
    facts = replace(sent.facts, detail=why) if why and not sent.facts.detail else sent.facts
    return Word(
        id=sent.claimed.id,
        fence=sent.claimed.fence,
        outcome=outcome,
        kind=kind,
        reason=code,
        facts=facts,
    )
