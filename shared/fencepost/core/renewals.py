"""Whose lease is said to be longer: what is in flight with half a lease or less, where that still helps."""

import math
from collections.abc import Iterable

from fencepost.core.budget import Budget
from fencepost.core.exchange import Exchange
from fencepost.core.inflight import Flight, Inflight
from fencepost.core.notification import Held

NEVER = math.inf


class Renewals:
    """Renewals of one run."""

    def __init__(self, budget: Budget, inflight: Inflight) -> None:
        self._budget = budget
        self._inflight = inflight
        self.forgotten = False
        self._looked_at = -1  # the version of the flights at the last look
        self._next_at = NEVER  # nothing is due before

    def due(self, now: float) -> tuple[Held, ...]:
        if self.next_at(now) > now:
            return ()
        return tuple(
            flight.claimed.held for flight in self._inflight if self._due_at(flight, now) <= now
        )

    def next_at(self, now: float) -> float:
        """When the next renewal is due; infinity: none. Looks at the flights only when that may have changed."""
        if self._looked_at != self._inflight.version or now >= self._next_at:
            self._looked_at = self._inflight.version
            self._next_at = min((self._due_at(one, now) for one in self._inflight), default=NEVER)
        return self._next_at

    def _due_at(self, flight: Flight, now: float) -> float:
        if flight.lost or self.forgotten:
            return NEVER
        if not self._budget.renewal_helps(now, flight.lease_until) and (
            now >= self._budget.renew_at(flight.lease_until)
        ):
            return NEVER  # its lease ends with the invocation
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
