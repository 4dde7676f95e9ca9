"""What an answer about an earlier attempt means for the row in doubt (policy `reconcile`)."""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core import doubt, reason
from fencepost.core.backoff import refunds, wait_seconds
from fencepost.core.doubt import Advice, CloseUnsent, SendIt
from fencepost.core.exchange import Facts, Word
from fencepost.core.gone import gone_words
from fencepost.core.notification import AttemptOutcome, Claimed, Kind
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
from fencepost.core.transition import Sent

# What a delivered attempt says of the doubt before it.
ASKED_NOT_THERE = "its provider was asked first, and did not have it"
COULD_NOT_SAY = "the provider was asked, and could not say"


class AskLater(Struct, frozen=True):
    """The provider could not say: given back unsent, with this delay. The ledger keeps the question and its error."""

    word: Word


def after_asking(asked: Sent, outcome: Outcome | None) -> Advice | AskLater:
    """Delivered closes, refused for good closes, not accepted is sent now; no answer is asked again later."""
    claimed = asked.claimed
    match outcome:
        case Delivered():
            return doubt.closing(claimed, Kind.DELIVERED, reason.RECONCILED)
        case Rejected():
            return doubt.closing(claimed, Kind.DEAD, reason.REJECTED)
        case Unregistered():
            return _gone(claimed, outcome)
        case Failed() | NotSent() if doubt.has_expired(claimed, asked.elapsed_seconds):
            return doubt.closing(claimed, Kind.EXPIRED, reason.EXPIRED)  # while it was asked about
        case Failed() | NotSent():
            return SendIt()
        case Throttled(reason=why, retry_after_seconds=wish):
            return _later(asked, why, wish)
        case CredentialFailure(reason=why) | Uncertain(reason=why):
            return _later(asked, why)
        case None:
            return _later(asked, None)
        case _:
            assert_never(outcome)


def _gone(claimed: Claimed, outcome: Unregistered) -> CloseUnsent:
    """With the provider's words, as after a send: by them the database makes an event of it, for producers."""
    facts = Facts(reference=gone_words(outcome), detail=outcome.reason)
    closing = doubt.closing(claimed, Kind.DEAD, reason.UNREGISTERED)
    return CloseUnsent(replace(closing.word, facts=facts))


def _later(
    asked: Sent, why: str | None, retry_after_seconds: float | None = None
) -> CloseUnsent | AskLater:
    """Until the maximum age; then nobody will ever say, and it is held."""
    claimed: Claimed = asked.claimed
    if claimed.age_seconds + asked.elapsed_seconds >= asked.policy.age_max_seconds:
        return doubt.held(
            claimed, reason.TOO_OLD, f"{COULD_NOT_SAY}: {why}" if why else COULD_NOT_SAY
        )
    delay = wait_seconds(
        refunds(claimed),
        retry_after_seconds=retry_after_seconds,
        policy=asked.policy,
        roll=asked.roll,
    )
    word = Word(
        id=claimed.id,
        fence=claimed.fence,
        outcome=AttemptOutcome.NOT_SENT,
        delay_seconds=delay,
        reason=reason.NO_ANSWER,
        facts=Facts(detail=why),
    )
    return AskLater(word)
