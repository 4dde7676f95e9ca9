"""What may still be started: the invocation's remaining time and the leases, in seconds of a monotonic clock."""

from dataclasses import dataclass


class ImpossibleTiming(ValueError):
    """Two settings that cannot both hold; the message names them and their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take at most. Seconds."""

    send_timeout_seconds: float = 10.0  # one send, from dial to full response head and capped body
    settle_reserve_seconds: float = 2.0  # to say what came of it
    lease_seconds: float = 20.0
    linger_seconds: float = 0.010  # the short wait that groups words into one exchange
    lease_margin_seconds: float = 2.0  # a lease outlives the invocation's hard end by this at most
    exchange_timeout_seconds: float = 5.0  # an exchange without an answer for so long is UNKNOWN
