"""What a run holds: claimed rows from the claim to the reply, keyed by (id, fence)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from fencepost.core.notification import ChannelId, Claimed, Held, NotificationId


class Stage(Enum):
    WAITING = auto()  # to be sent alone, once nothing else is in flight
    SENDING = auto()
    ASKING = auto()  # the provider is asked about an earlier attempt
    SHADOW = auto()  # this run took over its own row: what the older send comes to decides


IN_THE_AIR = frozenset({Stage.SENDING, Stage.ASKING})


@dataclass(slots=True, kw_only=True)
class Flight:
    """One held row. Instants of the run's monotonic clock."""

    claimed: Claimed
    stage: Stage
    asked_at: float  # when the exchange that brought it was said: the durations in `claimed` count from here
    lease_until: float
    lost: bool = False  # another holds it now; what comes back is evidence
    cancelled: bool = False
    renewed: bool = False
    renewal_wanted: bool = False  # now, not at half its lease


class Inflight:
    """All flights of a run. At most one flight of a notification is in the air, whatever its fences."""

    def __init__(self) -> None:
        self._flights: dict[Held, Flight] = {}
        self._airborne: dict[NotificationId, Held] = {}
        self._by_channel: Counter[ChannelId] = Counter()
        # Every reply asks for the shadows: among a thousand in the air it must not look through all.
        self._by_stage: dict[Stage, dict[Held, Flight]] = {stage: {} for stage in Stage}

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

    def anything_airborne(self) -> bool:
        return bool(self._airborne)

    def at(self, stage: Stage) -> list[Flight]:
        return list(self._by_stage[stage].values())

    def shadows_of(self, id: NotificationId) -> list[Flight]:
        return [flight for flight in self.at(Stage.SHADOW) if flight.claimed.id == id]

    def add(self, flight: Flight) -> None:
        """From here to its removal a flight keeps its stage."""
        self._flights[flight.claimed.held] = flight
        self._by_channel[flight.claimed.channel] += 1
        self._by_stage[flight.stage][flight.claimed.held] = flight
        if flight.stage in IN_THE_AIR:
            self._airborne[flight.claimed.id] = flight.claimed.held

    def remove(self, held: Held) -> Flight | None:
        """The flight has ended; None where it is not ours."""
        flight = self._flights.pop(held, None)
        if flight is None:
            return None
        self._by_channel[flight.claimed.channel] -= 1
        del self._by_stage[flight.stage][held]
        if self._airborne.get(held.id) == held:
            del self._airborne[held.id]
        return flight
