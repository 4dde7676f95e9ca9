"""What a reply means: a closed union. A sender's table makes them; `core/transition.py` acts on them."""

from msgspec import Struct


class Delivered(Struct, frozen=True):
    """The provider accepted it."""

    reference: str | None = None  # the provider's own id
    receipt_due: bool = False  # by that id it tells later what became of it (core/receipt.py)


class Failed(Struct, frozen=True):
    """Definitely not processed, or harmless to repeat: back off; costs an attempt."""

    reason: str
    retry_after_seconds: float | None = None


class Throttled(Struct, frozen=True):
    """Refused unprocessed for load: wait, the whole channel too if `channel_wide`; attempt refunded."""

    reason: str
    retry_after_seconds: float | None = None
    channel_wide: bool = True


class Rejected(Struct, frozen=True):
    """This message can never succeed."""

    reason: str


class Unregistered(Struct, frozen=True):
    """The address is dead or opted out."""

    reason: str
    gone_at: float | None = None  # unix seconds, where the provider says since when
    guarded: bool = False  # a wrong environment or project would be answered the same way


class CredentialFailure(Struct, frozen=True):
    """The channel's credentials or configuration: pause the channel; attempt refunded."""

    reason: str


class NotSent(Struct, frozen=True):
    """No byte of the request left, or none was acted upon: defer; attempt refunded."""

    reason: str
    blameless: bool = (
        False  # nothing is wrong with the way there (a token was renewed): no breaker counts it
    )


class Uncertain(Struct, frozen=True):
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
