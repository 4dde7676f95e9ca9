"""What a run holds: claimed rows from the claim to the reply, keyed by (id, fence)."""

from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.notification import ChannelId, Claimed, Held, NotificationId


class Stage(Enum):
    WAITING = auto()  # to be sent alone, once nothing else is in flight
    IN_LINE = auto()  # to be sent once its host has answered another (core/hosts.py)
    SENDING = auto()
    ASKING = auto()  # the provider is asked about an earlier attempt
    SHADOW = auto()  # this run took over its own row: what the older send comes to decides


INTERRUPTIONS_ALONE = (
    2  # from here a row is sent alone: the killer is found, and not its neighbours
)
IN_THE_AIR = frozenset({Stage.SENDING, Stage.ASKING})


class Flight(Struct, kw_only=True):
    """One held row. Instants of the run's monotonic clock."""

    claimed: Claimed
    stage: Stage
    asked_at: float  # when the exchange that brought it was said: the durations in `claimed` count from here
    lease_until: float
    lost: bool = False  # another holds it now; what comes back is evidence
    cancelled: bool = False
    renewed: bool = False
    asked: bool = False  # its provider was, and did not have it
    renewal_wanted: bool = False  # now, not at half its lease

    def as_it_is(self, now: float) -> Claimed:
        """The row now: its durations counted on from the claim."""
        claimed, elapsed = self.claimed, now - self.asked_at
        expires, first = claimed.expires_in_seconds, claimed.first_attempt_age_seconds
        return replace(
            claimed,
            age_seconds=claimed.age_seconds + elapsed,
            expires_in_seconds=None if expires is None else expires - elapsed,
            first_attempt_age_seconds=None if first is None else first + elapsed,
            lease_left_seconds=self.lease_until - now,
        )


class Inflight:
    """All flights of a run. At most one flight of a notification is in the air, whatever its fences.

    Every question is answered without looking at all flights: there may be a thousand, and as many replies a second.
    """

    def __init__(self) -> None:
        self._flights: dict[Held, Flight] = {}
        self._by_stage: dict[Stage, dict[Held, Flight]] = {stage: {} for stage in Stage}
        self._airborne: dict[NotificationId, Held] = {}
        self._by_channel: Counter[ChannelId] = Counter()
        self._lonely: dict[Held, Flight] = {}
        self.version = 0  # raised by whatever may need a renewal earlier than was thought

    def __len__(self) -> int:
        return len(self._flights)

    def __iter__(self) -> Iterator[Flight]:
        return iter(tuple(self._flights.values()))

    def get(self, held: Held) -> Flight | None:
        return self._flights.get(held)

    def occupied(self, channel: ChannelId) -> int:
        """Slots in use."""
        return self._by_channel[channel]

    def airborne(self, id: NotificationId) -> bool:
        """Whether a send or a question about this notification is under way, at any fence."""
        return id in self._airborne

    def at(self, stage: Stage) -> list[Flight]:
        return list(self._by_stage[stage].values())

    def lonely(self) -> list[Flight]:
        """Those that wait to be sent alone, or are being sent alone."""
        return [flight for flight in self._lonely.values() if flight.stage is not Stage.SHADOW]

    def shadows_of(self, id: NotificationId) -> list[Flight]:
        return [flight for flight in self.at(Stage.SHADOW) if flight.claimed.id == id]

    def add(self, flight: Flight) -> None:
        held = flight.claimed.held
        self._flights[held] = self._by_stage[flight.stage][held] = flight
        self._by_channel[flight.claimed.channel] += 1
        if flight.stage in IN_THE_AIR:
            self._airborne[held.id] = held
        if flight.claimed.interruptions >= INTERRUPTIONS_ALONE:
            self._lonely[held] = flight
        self.version += 1

    def remove(self, held: Held) -> Flight | None:
        """The flight has ended, or changes its stage; None where it is not ours."""
        flight = self._flights.pop(held, None)
        if flight is None:
            return None
        del self._by_stage[flight.stage][held]
        self._by_channel[flight.claimed.channel] -= 1
        self._lonely.pop(held, None)
        if self._airborne.get(held.id) == held:
            del self._airborne[held.id]
        return flight

    def want_renewal(self, flight: Flight) -> None:
        """Now, not at half its lease."""
        flight.renewal_wanted = True
        self.version += 1
