"""The hosts behind a channel whose recipients name their own: one that is dead or throttles keeps only its own waiting.

A host that has not answered yet, or was silent last, gets a quarter of the channel's slots. What is claimed for it
beyond that waits in line, and goes when it answers: one that is well loses nothing. After two seconds without an answer
nobody waits in line for it any more, and a dead one leaves the others their slots while it is found out.

Of hosts in trouble too many are never known: the oldest is forgotten. Each run finds out for itself, after a few sends.
What it gives back comes due later, spread out, so that the next run does not meet all of it at once.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable

from fencepost.core.backoff import JITTER_SHARE, retry_after_floor
from fencepost.core.breaker import HOST, Breaker, is_silent
from fencepost.core.outcome import Outcome, Throttled
from fencepost.core.reply import Phase

OriginOf = Callable[[str], str | None]  # of a recipient; None: it names no host
HOSTS_MAX = 1000
THROTTLE_SECONDS = 5.0  # where the host says nothing
SHARE_UNANSWERED = 4  # a quarter of the slots
PATIENCE_SECONDS = 2.0  # with a host that has not answered yet


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

    def __init__(self, origin_of: OriginOf | None, slots: int) -> None:
        self._origin_of = origin_of
        self._share = max(slots // SHARE_UNANSWERED, 1)
        self._hosts: OrderedDict[str, Host] = OrderedDict()
        self._flying: Counter[str] = Counter()  # sends under way
        self._answered: set[str] = set()
        self._patient_until: dict[str, float] = {}  # with those that have not

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

    def in_line_until(self, recipient: str) -> float | None:
        """Until when to wait for an answer of its host; None: not at all, there is a slot for it."""
        if not self._flying:
            return None
        origin = self._origin(recipient)
        if origin in self._answered or self._flying[origin] < self._share:
            return None
        return self._patient_until[origin]

    def began(self, recipient: str, now: float, timeout_seconds: float) -> None:
        """A send begins. To a host whose pause is over it is the probe, and the next ones wait for what it comes to."""
        if origin := self._origin(recipient):
            self._flying[origin] += 1
            if origin not in self._answered:
                self._patient_until.setdefault(origin, now + PATIENCE_SECONDS)
        host = self._of(recipient)
        if host is not None and not host.breaker.closed:
            host.probe_until = now + timeout_seconds

    def ended(self, recipient: str, phase: Phase | None) -> None:
        """A send that began has ended, however. Only an answer off the wire says that somebody is there."""
        if not (origin := self._origin(recipient)):
            return
        if phase is Phase.ANSWERED:
            self._answered.add(origin)
            self._patient_until.pop(origin, None)
        elif phase is not None:
            self._answered.discard(origin)
            self._patient_until.setdefault(origin, 0.0)
        self._flying[origin] -= 1
        if not self._flying[origin]:
            del self._flying[origin]
            self._forget_some()

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

    def _forget_some(self) -> None:
        """Of too many hosts: those with nothing under way. Each has its share until it answers again."""
        if len(self._answered) > HOSTS_MAX:
            self._answered.intersection_update(self._flying)
        if len(self._patient_until) > HOSTS_MAX:
            kept = self._flying.keys() & self._patient_until.keys()
            self._patient_until = {origin: self._patient_until[origin] for origin in kept}

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
