"""When the next exchange begins and what it says: group commit without waiting for the slowest send."""

from collections.abc import Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core.budget import Budget
from fencepost.core.conversation import Conversation, Mood
from fencepost.core.deliveries import Deliveries
from fencepost.core.exchange import Exchange, GateWord, Want, Word
from fencepost.core.gates import Gates
from fencepost.core.isolation import Isolation, Part, Portion
from fencepost.core.notification import RunId
from fencepost.core.renewals import Renewals
from fencepost.core.words import Saying

WORDS_ENOUGH = 10  # in one exchange: more of them cost it hardly less a word
SHARE_ENOUGH = 10  # and a tenth of what the run holds: fewer cost CPU, more leave slots empty


class Rhythm(Struct, kw_only=True):
    """The composing of exchanges."""

    run: RunId
    budget: Budget
    gates: Gates
    deliveries: Deliveries
    talk: Conversation
    isolation: Isolation
    renewals: Renewals
    noticed_at: float | None = None  # since when there is something to say

    def begin(self, now: float) -> None:
        """The first words need no linger."""
        self.noticed_at = now - self.budget.timing.linger_seconds

    def ended(self, now: float) -> None:
        """An exchange has ended: the next begins after a linger at the earliest."""
        self.noticed_at = None

    def exchange(self, now: float, *, ending: bool) -> Exchange | None:
        """What to say now; None: nothing, or not yet."""
        if now < self.talk.retry_at and self.talk.failures:
            return None
        portion, repeat = self.isolation.current, self.talk.repeat
        if repeat is not None and (portion is not None or not ending):
            return self._again(repeat, now)
        if portion is not None:
            return self._portion(portion, now)
        if ending:
            return self._last(now)
        return self._ordinary(now) if self._due(now) else None

    def instants(self, now: float) -> Iterator[float]:
        """When, with no exchange under way, something may become due to say."""
        if self.talk.failures:
            yield self.talk.retry_at
        if self.noticed_at is not None:
            yield self.noticed_at + self.budget.timing.linger_seconds
        yield self.renewals.next_at(now)
        occupied = self.deliveries.occupied
        for at in (
            self.gates.next_opening(now, self.budget.stop_claiming, occupied),
            self.gates.next_word_at(),
            self.deliveries.line_ends_at(),
        ):
            if at is not None:
                yield at

    # --- whether

    def _due(self, now: float) -> bool:
        """Something to say for at least a linger, or enough of it. After a failure the wait was the linger."""
        if not self._something(now):
            self.noticed_at = None
            return False
        if self.noticed_at is None:
            self.noticed_at = now
        lingered = now >= self.noticed_at + self.budget.timing.linger_seconds
        return lingered or self._enough() or bool(self.talk.failures)

    def _enough(self) -> bool:
        """Whether waiting for company only keeps slots empty. In steady work their next sends end together too."""
        words, flying = len(self.deliveries.words), len(self.deliveries.inflight)
        return words >= max(WORDS_ENOUGH, (words + flying) // SHARE_ENOUGH)

    def _something(self, now: float) -> bool:
        if len(self.deliveries.words) or self.gates.words(now) or self.renewals.due(now):
            return True
        if self.talk.mood is Mood.AWAY:
            return True  # an empty exchange finds out whether it is back
        hungry = self.gates.hungry(now, self.deliveries.occupied)
        return hungry and self._claiming(now)

    def _claiming(self, now: float) -> bool:
        """Before `stop_claiming`, with a database that answers, and not while a row is or waits to be alone."""
        return (
            self.budget.may_claim(now) and self.talk.may_claim() and not self.deliveries.one_alone()
        )

    # --- what

    def _ordinary(self, now: float) -> Exchange:
        sayings = self.deliveries.words.all()
        return replace(
            self._bare(now),
            settle=_words(sayings),
            renew=self.renewals.due(now),
            gates=self.gates.words(now),
            claim=self._wants(sayings, now),
        )

    def _wants(self, sayings: tuple[Saying, ...], now: float) -> tuple[Want, ...]:
        if not self._claiming(now):
            return ()
        giving_back = {said.channel for said in sayings if said.gives_back_at_once}
        return self.gates.wants(now, self.deliveries.occupied, giving_back)

    def _portion(self, portion: Portion, now: float) -> Exchange:
        settle = _words(self.deliveries.words.those(portion.helds))
        rest = portion.part is not Part.EMPTIED
        return replace(
            self._bare(now),
            settle=settle,
            renew=self.renewals.due(now) if rest else (),
            gates=self.gates.words(now) if rest else (),
        )

    def _again(self, repeat: Exchange, now: float) -> Exchange:
        """The same words under the same seq. The lease counts anew; a claim not committed may be left out."""
        claim = repeat.claim if self._claiming(now) else ()
        return replace(repeat, lease_seconds=self.budget.lease_seconds(now), claim=claim)

    def _last(self, now: float) -> Exchange:
        """Everything left to say, under the seq of an unheard claim where there is one: it is released then."""
        return replace(
            self._bare(now),
            settle=_words(self.deliveries.words.all()),
            renew=() if self.renewals.forgotten else self.deliveries.words.given_up(),
            gates=self._all_gate_words(now),
            last=True,
        )

    def _all_gate_words(self, now: float) -> tuple[GateWord, ...]:
        """Those nobody is known to have heard, and the newer ones over them."""
        unheard = self.talk.repeat.gates if self.talk.repeat is not None else ()
        return tuple({word.channel: word for word in (*unheard, *self.gates.words(now))}.values())

    def _bare(self, now: float) -> Exchange:
        return Exchange(
            run=self.run,
            seq=self.talk.next_seq,
            lease_seconds=self.budget.lease_seconds(now),
        )


def _words(sayings: tuple[Saying, ...]) -> tuple[Word, ...]:
    """By id: the order in which the database finds their rows (two fences of one stay as they came)."""
    return tuple(sorted((said.word for said in sayings), key=attrgetter("id")))
