"""What a reply means: a closed union. A sender's table makes them; `core/transition.py` acts on them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delivered:
    """The provider accepted it."""

    reference: str | None = None  # the provider's own id
    receipt_due: bool = False  # by that id it tells later what became of it (core/receipt.py)


@dataclass(frozen=True, slots=True)
class Failed:
    """Definitely not processed, or harmless to repeat: back off; costs an attempt."""

    reason: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """Refused unprocessed for load: wait, the whole channel too if `channel_wide`; attempt refunded."""

    reason: str
    retry_after_seconds: float | None = None
    channel_wide: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """This message can never succeed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unregistered:
    """The address is dead or opted out."""

    reason: str
    gone_at: float | None = None  # unix seconds, where the provider says since when
    guarded: bool = False  # a wrong environment or project would be answered the same way


@dataclass(frozen=True, slots=True)
class CredentialFailure:
    """The channel's credentials or configuration: pause the channel; attempt refunded."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """No byte of the request left, or none was acted upon: defer; attempt refunded."""

    reason: str
    blameless: bool = (
        False  # nothing is wrong with the way there (a token was renewed): no breaker counts it
    )


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may have been accepted: the policy for doubt decides."""

    reason: str
    retry_after_seconds: float | None = None


Outcome = (
    Delivered
    | Failed
    | Throttled
    | Rejected
    | Unregistered
    | CredentialFailure
    | NotSent
    | Uncertain
)
