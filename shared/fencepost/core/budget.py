"""What may still be started: the invocation's remaining time and the leases, in seconds of a monotonic clock."""

import math

from msgspec import Struct

LONGEST_LEASE_SECONDS = (
    900.0  # the database cuts a lease there: a clock set back must not hide a row
)
STOOD_STILL_SECONDS = 1.0  # so long after its timeout a send has ended in any case


class ImpossibleTiming(ValueError):
    """Two settings that cannot both hold; the message names them and their values."""


class Timing(Struct, frozen=True, kw_only=True):
    """How long things take at most. Seconds. Raises `ImpossibleTiming`."""

    send_timeout_seconds: float = 10.0  # one send, from dial to full response head and capped body
    settle_reserve_seconds: float = 2.0  # to say what came of it
    lease_seconds: float = 20.0
    linger_seconds: float = 0.010  # the short wait that groups words into one exchange
    lease_margin_seconds: float = 2.0  # a lease outlives the invocation's hard end by this at most
    exchange_timeout_seconds: float = 5.0  # an exchange without an answer for so long is UNKNOWN

    def __post_init__(self) -> None:
        _refuse_odd_numbers(self)
        _refuse_impossible_relations(self)

    @property
    def send_and_settle_seconds(self) -> float:
        """What one send needs from its start to its settled word."""
        return self.send_timeout_seconds + self.settle_reserve_seconds


def _refuse_odd_numbers(timing: Timing) -> None:
    for name in ("send_timeout", "settle_reserve", "lease", "exchange_timeout"):
        _require(f"{name}_seconds", getattr(timing, f"{name}_seconds"), "more than", above=0.0)
    for name in ("linger", "lease_margin"):
        _require(f"{name}_seconds", getattr(timing, f"{name}_seconds"), "at least", above=-1e-9)


def _require(name: str, value: float, words: str, *, above: float) -> None:
    if not math.isfinite(value) or value <= above:
        raise ImpossibleTiming(f"{name} is {value:g}; it must be {words} 0 and finite")


def _refuse_impossible_relations(timing: Timing) -> None:
    if timing.lease_seconds <= timing.send_and_settle_seconds:
        raise ImpossibleTiming(
            f"lease_seconds ({timing.lease_seconds:g}) must be longer than send_timeout_seconds "
            f"({timing.send_timeout_seconds:g}) plus settle_reserve_seconds ({timing.settle_reserve_seconds:g})"
        )
    if timing.lease_seconds > LONGEST_LEASE_SECONDS:
        raise ImpossibleTiming(
            f"lease_seconds ({timing.lease_seconds:g}) is longer than the database's longest lease "
            f"({LONGEST_LEASE_SECONDS:g})"
        )
    if timing.linger_seconds >= timing.settle_reserve_seconds:
        raise ImpossibleTiming(
            f"linger_seconds ({timing.linger_seconds:g}) must be shorter than settle_reserve_seconds "
            f"({timing.settle_reserve_seconds:g})"
        )


class Budget(Struct, frozen=True, kw_only=True):
    """The phases of one run on the monotonic clock: claiming, sending to an end, last words, over."""

    timing: Timing
    hard_end: float  # the instant the invocation dies

    @property
    def stop_claiming(self) -> float:
        """From here no send that starts could be settled: nothing is claimed, nothing new starts."""
        return self.hard_end - self.timing.send_and_settle_seconds

    @property
    def hard_stop(self) -> float:
        """From here only words: sends in flight are cancelled."""
        return self.hard_end - self.timing.settle_reserve_seconds

    @property
    def finish_by(self) -> float:
        """From here not even words: what is unsaid leaves another way, in the rest of the reserve."""
        return self.hard_end - self.timing.settle_reserve_seconds / 4.0

    def may_claim(self, now: float) -> bool:
        return now < self.stop_claiming

    def may_start(self, now: float, lease_until: float) -> bool:
        """G4: a send and its settling fit in the lease left and in the invocation time left.

        `lease_until` is counted from the instant the claim (or renewal) was *sent*: earlier than the truth.
        """
        return now + self.timing.send_and_settle_seconds <= min(lease_until, self.hard_end)

    def kept_up(self, took_seconds: float, now: float, lease_until: float) -> bool:
        """Whether a send that took so long ended when it should. If not, the run stood still: frozen, or starved."""
        latest = self.timing.send_timeout_seconds + STOOD_STILL_SECONDS
        return took_seconds <= latest and now < lease_until

    def lease_seconds(self, now: float) -> float:
        """What to ask for: never outliving the hard end by more than the margin; above 0 in any case."""
        left = self.hard_end - now + self.timing.lease_margin_seconds
        return max(min(self.timing.lease_seconds, left), 0.001)

    def renew_at(self, lease_until: float) -> float:
        """When half a lease is left: enough for one exchange that fails and one that does not."""
        return lease_until - self.timing.lease_seconds / 2.0

    def renewal_helps(self, now: float, lease_until: float) -> bool:
        """Whether a renewal now would move the lease's end by something worth an exchange."""
        return now + self.lease_seconds(now) > lease_until + self.timing.lease_seconds / 8.0
