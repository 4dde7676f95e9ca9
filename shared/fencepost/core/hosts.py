"""The hosts behind a channel whose recipients name their own: one that is dead or throttles keeps only its own waiting.

Only hosts in trouble are known, so that the good case costs nothing; of too many, the oldest trouble is forgotten.
Each run finds out for itself, after a few sends. What it gives back comes due later, spread out, so that the next run
does not meet all of it at once.
"""

from collections import OrderedDict
from collections.abc import Callable

from fencepost.core.backoff import JITTER_SHARE, retry_after_floor
from fencepost.core.breaker import HOST, Breaker, is_silent
from fencepost.core.outcome import Outcome, Throttled

OriginOf = Callable[[str], str | None]  # of a recipient; None: it names no host
HOSTS_MAX = 1000
THROTTLE_SECONDS = 5.0  # where the host says nothing


class Host:
    """One host in trouble."""

    def __init__(self) -> None:
        self.breaker = Breaker(HOST, is_silent)
        self.throttled_until = 0.0
        self.probe_until = 0.0

    def opens_at(self) -> float:
        return max(self.throttled_until, self.breaker.open_until, self.probe_until)


class Hosts:
    """Those of one channel that this run knows to be in trouble. `origin_of` None: its recipients name no hosts."""

    def __init__(self, origin_of: OriginOf | None) -> None:
        self._origin_of = origin_of
        self._hosts: OrderedDict[str, Host] = OrderedDict()

    @property
    def apart(self) -> bool:
        """Whether hosts, and not the channel, are what may be in trouble."""
        return self._origin_of is not None

    def __len__(self) -> int:
        return len(self._hosts)

    def wait_seconds(self, recipient: str, now: float) -> float:
        """How long this recipient's host is left alone; 0: not at all."""
        host = self._of(recipient)
        return max(host.opens_at() - now, 0.0) if host is not None else 0.0

    def began(self, recipient: str, now: float, timeout_seconds: float) -> None:
        """A send begins. To a host whose pause is over it is the probe, and the next ones wait for what it comes to."""
        host = self._of(recipient)
        if host is not None and not host.breaker.closed:
            host.probe_until = now + timeout_seconds

    def hear(
        self, recipient: str, outcome: Outcome, now: float, *, retry_after_max: float, roll: float
    ) -> None:
        """Learn from the end of a send. A host that answers is in trouble no more."""
        bad, throttled = is_silent(outcome), isinstance(outcome, Throttled)
        host = self._of(recipient, new=bool(bad) or throttled)
        if host is None:
            return
        host.probe_until = 0.0
        host.breaker.hear(outcome, now, roll)
        if isinstance(outcome, Throttled):
            wish = retry_after_floor(outcome.retry_after_seconds, max_seconds=retry_after_max)
            wait = (THROTTLE_SECONDS if wish is None else wish) * (1.0 + JITTER_SHARE * roll)
            host.throttled_until = max(host.throttled_until, now + wait)
        elif bad is False and host.breaker.closed:
            self._hosts.pop(self._origin(recipient), None)

    def _of(self, recipient: str, *, new: bool = False) -> Host | None:
        if self._origin_of is None or not (self._hosts or new):
            return None
        origin = self._origin(recipient)
        if new and origin and origin not in self._hosts:
            self._hosts[origin] = Host()
            if len(self._hosts) > HOSTS_MAX:
                self._hosts.popitem(last=False)
        return self._hosts.get(origin)

    def _origin(self, recipient: str) -> str:
        return (self._origin_of(recipient) if self._origin_of else None) or ""
