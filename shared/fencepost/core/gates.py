"""All gates of a run: which channels are asked for rows now, and until when it pays to wait."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import Exchange, Exchanged, GateWord, Want
from fencepost.core.gate import Gate
from fencepost.core.hosts import OriginOf
from fencepost.core.notification import ChannelId

Occupied = Callable[[ChannelId], int]


class Gates:
    """The channels this run can send on."""

    def __init__(self) -> None:
        self._gates: dict[ChannelId, Gate] = {}
        self._one_at_a_time = False  # claims met a data error: ask channel by channel
        self._turn = 0

    def __iter__(self) -> Iterator[Gate]:
        return iter(self._gates.values())

    def __getitem__(self, channel: ChannelId) -> Gate:
        return self._gates[channel]

    def start(
        self,
        channels: Mapping[ChannelId, tuple[Channel, Facility]],
        now: float,
        origins: Mapping[ChannelId, OriginOf] = MappingProxyType({}),
    ) -> None:
        self._gates = {
            id: Gate(channel, offer, now, origin_of=origins.get(id))
            for id, (channel, offer) in channels.items()
        }

    def hungry(self, now: float, occupied: Occupied) -> bool:
        """Whether a claim alone is worth an exchange."""
        return any(gate.is_hungry(now) and _free(gate, occupied) > 0 for gate in self)

    def wants(self, now: float, occupied: Occupied, without: set[ChannelId]) -> tuple[Want, ...]:
        """The free slots of each open gate; a dry one too: where an exchange is said anyway, asking is free."""
        wants = tuple(
            gate.want(free)
            for gate in self
            if gate.is_open(now) and gate.id not in without and (free := _free(gate, occupied)) > 0
        )
        if not self._one_at_a_time or not wants:
            return wants
        self._turn += 1
        return (wants[self._turn % len(wants)],)

    def blame(self, channels: tuple[ChannelId, ...], why: str) -> ChannelId | None:
        """A claim itself was refused. One channel: none of it in this run. Several: find out which."""
        self._one_at_a_time = True
        if len(channels) != 1:
            return None
        self._gates[channels[0]].skip(why)
        return channels[0]

    def words(self, now: float) -> tuple[GateWord, ...]:
        words = (gate.unsaid_word(now) for gate in self)
        return tuple(word for word in words if word is not None)

    def said(self, exchange: Exchange) -> None:
        for word in exchange.gates:
            self._gates[word.channel].said()

    def unheard(self, exchange: Exchange, now: float) -> None:
        for word in exchange.gates:
            self._gates[word.channel].unheard(now)

    def forget_words(self) -> None:
        """The database refuses them: the pauses stay this run's own."""
        for gate in self:
            gate.said()

    def heard(self, exchange: Exchange, answer: Exchanged, now: float) -> None:
        """The answers of the gates, and what each claim brought."""
        for word in exchange.gates:
            if word.channel not in answer.gates:
                self._gates[word.channel].unheard(now)
        for channel, gate_answer in answer.gates.items():
            if channel in self._gates:
                self._gates[channel].answered(gate_answer, now)
        for want in exchange.claim:
            got = sum(1 for row in answer.claimed if row.channel == want.channel)
            self._gates[want.channel].claimed(want, got, answer.gates.get(want.channel), now)

    def drained(self, stop_claiming: float) -> bool:
        return all(gate.is_done(stop_claiming) for gate in self)

    def next_opening(self, now: float, stop_claiming: float, occupied: Occupied) -> float | None:
        """When a gate that may still bring something opens."""
        openings = [
            gate.opens_at()
            for gate in self
            if not gate.is_done(stop_claiming) and gate.opens_at() > now and _free(gate, occupied)
        ]
        return min(openings, default=None)

    def next_word_at(self) -> float | None:
        instants = [at for gate in self if (at := gate.say_at()) is not None]
        return min(instants, default=None)


def _free(gate: Gate, occupied: Occupied) -> int:
    return max(gate.slots - occupied(gate.id), 0)
