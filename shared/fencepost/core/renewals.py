"""Whose lease is said to be longer: what is in flight with half a lease or less, where that still helps."""

from collections.abc import Iterable

from fencepost.core.budget import Budget
from fencepost.core.exchange import Exchange
from fencepost.core.inflight import Flight, Inflight
from fencepost.core.notification import Held


class Renewals:
    """Renewals of one run."""

    def __init__(self, budget: Budget, inflight: Inflight) -> None:
        self._budget = budget
        self._inflight = inflight
        self.forgotten = False

    def due(self, now: float) -> tuple[Held, ...]:
        return tuple(
            flight.claimed.held for flight in self._inflight if self._due_at(flight, now) <= now
        )

    def next_at(self, now: float) -> float | None:
        instants = (self._due_at(flight, now) for flight in self._inflight)
        return min((at for at in instants if at != float("inf")), default=None)

    def _due_at(self, flight: Flight, now: float) -> float:
        if flight.lost or self.forgotten:
            return float("inf")
        if not self._budget.renewal_helps(now, flight.lease_until) and (
            now >= self._budget.renew_at(flight.lease_until)
        ):
            return float("inf")  # its lease ends with the invocation
        return now if flight.renewal_wanted else self._budget.renew_at(flight.lease_until)

    def heard(self, exchange: Exchange, lost: Iterable[Held], said_at: float) -> None:
        """Counted from the instant the exchange was said: earlier than the truth."""
        gone = set(lost)
        for held in exchange.renew:
            flight = self._inflight.get(held)
            if flight is not None and held not in gone:
                flight.lease_until = said_at + exchange.lease_seconds
                flight.renewed, flight.renewal_wanted = True, False

    def forget(self) -> None:
        """The database refuses these renewals themselves: the rows live by the lease they have."""
        self.forgotten = True
