"""G9: after a data error, say less and less until the one bad row is found and parked; the others are settled."""

from collections import deque
from enum import Enum, auto

from msgspec import Struct

from fencepost.core.exchange import Exchange
from fencepost.core.fact import BadRowParked
from fencepost.core.notification import ChannelId, Held
from fencepost.core.words import Words, emptied, parking


class Part(Enum):
    """What a smaller exchange says."""

    WITHOUT_CLAIMS = auto()  # all the rest, as it was
    EMPTIED = auto()  # settle words only, details emptied
    REST = auto()  # renewals and gates only


class Portion(Struct, frozen=True):
    """One smaller exchange still to be said."""

    part: Part
    helds: tuple[Held, ...] = ()


class Isolation:
    """The portions left to say after a data error, and who turned out to be at fault."""

    def __init__(self) -> None:
        self._portions: deque[Portion] = deque()
        self._claimed_from: tuple[ChannelId, ...] = ()
        self._guilty_channels: tuple[ChannelId, ...] = ()  # whose claim it was
        self._guilty_rest = False  # renewals or gates

    @property
    def current(self) -> Portion | None:
        """What to say now; None: speak freely."""
        return self._portions[0] if self._portions else None

    def take_guilty_channels(self) -> tuple[ChannelId, ...]:
        """The channels of a claim that was at fault; told once."""
        found, self._guilty_channels = self._guilty_channels, ()
        return found

    def take_guilty_rest(self) -> bool:
        """Whether renewals or gate words were at fault; told once."""
        found, self._guilty_rest = self._guilty_rest, False
        return found

    def passed(self) -> None:
        """The current portion went through; if all the rest of the exchange did, its claims were at fault."""
        if not self._portions:
            return
        portion = self._portions.popleft()
        if portion.part is Part.WITHOUT_CLAIMS:
            self._guilty_channels = self._claimed_from
        self._claimed_from = ()

    def refused(self, exchange: Exchange, words: Words, detail: str) -> list[BadRowParked]:
        """Nothing of this exchange was committed: choose smaller portions, or park the last suspect."""
        portion = self._portions.popleft() if self._portions else None
        helds = tuple(word.held for word in exchange.settle)
        rest = bool(exchange.renew or exchange.gates)
        if portion is None and exchange.claim:
            self._without_claims(exchange, helds, rest)
        elif portion is not None and portion.part is Part.EMPTIED:
            return self._narrow(helds, words, detail)
        elif helds:
            self._empty(helds, rest, words)
        else:
            self._guilty_rest = rest
        return []

    def _without_claims(self, exchange: Exchange, helds: tuple[Held, ...], rest: bool) -> None:
        self._claimed_from = tuple(want.channel for want in exchange.claim)
        if helds or rest:
            self._portions.append(Portion(Part.WITHOUT_CLAIMS, helds))
        else:
            self._guilty_channels, self._claimed_from = self._claimed_from, ()

    def _empty(self, helds: tuple[Held, ...], rest: bool, words: Words) -> None:
        self._claimed_from = ()
        for said in words.those(helds):
            words.add(emptied(said))
        if rest:
            self._portions.appendleft(Portion(Part.REST))
        self._portions.appendleft(Portion(Part.EMPTIED, helds))

    def _narrow(self, helds: tuple[Held, ...], words: Words, detail: str) -> list[BadRowParked]:
        if len(helds) > 1:
            middle = len(helds) // 2
            self._portions.appendleft(Portion(Part.EMPTIED, helds[middle:]))
            self._portions.appendleft(Portion(Part.EMPTIED, helds[:middle]))
            return []
        return [park for held in helds for park in self._park(held, words, detail)]

    def _park(self, held: Held, words: Words, detail: str) -> list[BadRowParked]:
        said = words.get(held)
        if said is None or said.parked:
            words.give_up(
                held
            )  # not even that: its knowledge leaves as evidence, its row by its lease
            return []
        words.add(parking(said))
        self._portions.appendleft(Portion(Part.EMPTIED, (held,)))
        return [BadRowParked(held=held, detail=detail)]
