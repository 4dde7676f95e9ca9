"""Who speaks when: one exchange at a time, a new seq only after the last answer was read, repeats and waits."""

from enum import Enum, auto

from fencepost.core.exchange import Exchange, Failure

FIRST_WAIT_SECONDS = 0.05  # after a failed exchange, doubling
LONGEST_WAIT_SECONDS = 1.0
DOUBLINGS_MAX = 5


class Mood(Enum):
    """What the last failure means for what may be said next."""

    FINE = auto()
    REPEAT = auto()  # the same words under the same seq
    AWAY = auto()  # nothing was said: words yes, claims no
    REFUSED = auto()  # never will be: words yes (who knows), claims no


class Conversation:
    """The exchanges of one run, one after the other."""

    def __init__(self) -> None:
        self.under_way: Exchange | None = None
        self.said_at = 0.0
        self.mood = Mood.FINE
        self.failures = 0  # in a row
        self.retry_at = 0.0
        self.claim_unheard = False  # rows may be ours that we have not heard of
        self._seq = 0  # the last one said
        self._seq_heard = True
        self._repeat: Exchange | None = None

    @property
    def next_seq(self) -> int:
        """A new one only after the answer to the last was read."""
        return self._seq + 1 if self._seq_heard else self._seq

    @property
    def repeat(self) -> Exchange | None:
        """What must be said again, word for word, before anything else."""
        return self._repeat

    def may_claim(self) -> bool:
        return self.mood in (Mood.FINE, Mood.REPEAT)

    def said(self, exchange: Exchange, now: float) -> None:
        self.under_way, self.said_at = exchange, now
        self._seq, self._seq_heard = exchange.seq, False

    def answered(self) -> Exchange:
        """The answer was read: the exchange it belongs to."""
        exchange = self._over()
        self._seq_heard, self._repeat = True, None
        self.mood, self.failures, self.claim_unheard = Mood.FINE, 0, False
        return exchange

    def unanswered(self, failure: Failure, now: float, roll: float) -> Exchange:
        """No answer: what was said, and from now on what the failure allows."""
        exchange = self._over()
        self.failures += 1
        self.retry_at = now + _wait_seconds(failure, self.failures, roll)
        self.mood = _mood(failure)
        if failure is Failure.UNKNOWN and exchange.claim:
            self.claim_unheard = True
        self._repeat = exchange if self.mood is Mood.REPEAT else None
        return exchange

    def _over(self) -> Exchange:
        if self.under_way is None:
            raise AssertionError("an answer to an exchange that was not said")
        exchange, self.under_way = self.under_way, None
        return exchange


def _mood(failure: Failure) -> Mood:
    match failure:
        case Failure.UNKNOWN | Failure.RETRY:
            return Mood.REPEAT
        case Failure.DATA:
            return Mood.FINE
        case Failure.AWAY:
            return Mood.AWAY
        case Failure.REFUSED:
            return Mood.REFUSED


def _wait_seconds(failure: Failure, failures: int, roll: float) -> float:
    """Between half and all of the doubled wait: two runs that met in a deadlock must not meet again.

    A data error is followed by something else: no doubling while the bad row is looked for.
    """
    doublings = 0 if failure is Failure.DATA else min(failures - 1, DOUBLINGS_MAX)
    return min(FIRST_WAIT_SECONDS * 2.0**doublings, LONGEST_WAIT_SECONDS) * (0.5 + 0.5 * roll)
