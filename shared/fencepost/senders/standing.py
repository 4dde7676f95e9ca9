"""How we stand with each push service: whether a refusal is about one address or about our own key. No I/O.

A service answers a dead subscription and a wrong key alike (403). The difference is seen in company: where other
addresses of the same service are accepted, this one is at fault; where one after the other is refused, we are. One
refused address alone proves nothing, and anybody may have registered it: it must not stop a whole channel.
"""

from collections import OrderedDict
from enum import StrEnum

from msgspec import Struct, field

from fencepost.senders.request import Origin

NEVER_ACCEPTED_MAX = 3  # addresses refused by a service that has accepted none of ours
IN_A_ROW_MAX = 20  # addresses refused since it last accepted one
SERVICES_MAX = 1000  # whoever is unheard of longest is forgotten


class Blame(StrEnum):
    """What a refusal says."""

    ADDRESS = "address"  # others of this service are accepted
    OURS = "ours"  # the service refuses us
    NOBODY_KNOWS = "nobody knows"


class _Seen(Struct):
    accepted: bool = False
    refused: set[bytes] = field(default_factory=set)  # since the last acceptance


class Standing:
    """What one sender has seen. It lives as long as the sender: a change of the channel begins anew."""

    def __init__(self) -> None:
        self._services: OrderedDict[Origin, _Seen] = OrderedDict()

    def accepted(self, service: Origin) -> None:
        seen = self._of(service)
        seen.accepted = True
        seen.refused.clear()

    def refused(self, service: Origin, address: bytes) -> Blame:
        """Note a refusal of this address (its digest will do), and judge."""
        seen = self._of(service)
        most = IN_A_ROW_MAX if seen.accepted else NEVER_ACCEPTED_MAX
        if len(seen.refused) < most:
            seen.refused.add(address)
        if len(seen.refused) >= most:
            return Blame.OURS
        return Blame.ADDRESS if seen.accepted else Blame.NOBODY_KNOWS

    def _of(self, service: Origin) -> _Seen:
        seen = self._services.setdefault(service, _Seen())
        self._services.move_to_end(service)
        if len(self._services) > SERVICES_MAX:
            self._services.popitem(last=False)
        return seen
