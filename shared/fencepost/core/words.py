"""What a run still has to say: settle words from the moment they are known until their verdict is heard."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core import reason
from fencepost.core.exchange import NO_FACTS, Facts, Word
from fencepost.core.notification import AttemptOutcome, ChannelId, Claimed, Held, Kind
from fencepost.core.outcome import Outcome, Unregistered
from fencepost.core.step import Unsaid

NOT_DELIVERED = frozenset(
    {AttemptOutcome.REJECTED, AttemptOutcome.FAILED, AttemptOutcome.NOT_SENT, None}
)


class Saying(Struct, frozen=True, kw_only=True):
    """One word with what it is about. `outcome`: of the send it tells of; None: nothing was sent at this fence."""

    word: Word
    claimed: Claimed
    outcome: Outcome | None = None
    knowledge: tuple[AttemptOutcome, Facts] | None = None  # what must not be lost with the word
    parked: bool = False  # already the last resort for a row whose words the database refuses

    @property
    def channel(self) -> ChannelId:
        return self.claimed.channel

    @property
    def gives_back_at_once(self) -> bool:
        """The same exchange must not ask for rows of this channel: it would get this one again."""
        return self.word.kind is None and self.word.delay_seconds <= 0.0


def saying(word: Word, claimed: Claimed, outcome: Outcome | None = None) -> Saying:
    known = None
    if word.outcome is not None and word.outcome is not AttemptOutcome.HELD:
        known = (word.outcome, word.facts)
    return Saying(word=word, claimed=claimed, outcome=outcome, knowledge=known)


def unsent(word: Word) -> Word:
    """The same end for a fence at which nothing was sent."""
    delivered = word.kind is Kind.DELIVERED
    return replace(
        word,
        outcome=AttemptOutcome.HELD if word.kind is Kind.UNCERTAIN else None,
        reason=reason.ALREADY_DELIVERED if delivered else word.reason,
        facts=NO_FACTS,
    )


def emptied(said: Saying) -> Saying:
    """Without everything the database could stumble over and the row can do without."""
    facts = Facts(phase=said.word.facts.phase, digest=said.word.facts.digest)
    return replace(said, word=replace(said.word, facts=facts, reason=_plain(said.word.reason)))


def _plain(code: str | None) -> str | None:
    return (
        None if code is None else "".join(c for c in code[:40] if c.isascii() and c.isprintable())
    )


def parking(said: Saying) -> Saying:
    """Close the bad row where an operator finds it: dead, or uncertain where it may have been delivered.

    The outcome is never made less than it is: "nothing was begun" of a send that was would clear a doubt.
    """
    word, outcome = said.word, said.word.outcome
    if outcome is AttemptOutcome.DELIVERED:
        outcome = AttemptOutcome.UNCERTAIN
    kind = Kind.DEAD if outcome in NOT_DELIVERED else Kind.UNCERTAIN
    last = Word(id=word.id, fence=word.fence, outcome=outcome, kind=kind, reason=reason.BAD_ROW)
    return replace(said, word=last, parked=True)


class Words:
    """The words not yet answered, in the order they became known."""

    def __init__(self) -> None:
        self._words: dict[Held, Saying] = {}
        self._given_up: list[Saying] = []
        self._untold: list[Saying] = []

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, held: object) -> bool:
        return held in self._words

    def add(self, said: Saying) -> None:
        self._words[said.word.held] = said

    def get(self, held: Held) -> Saying | None:
        return self._words.get(held)

    def all(self) -> tuple[Saying, ...]:
        return tuple(self._words.values())

    def those(self, helds: Iterable[Held]) -> tuple[Saying, ...]:
        return tuple(self._words[held] for held in helds if held in self._words)

    def about(self, claimed: Claimed) -> Saying | None:
        """A word about a send of the same notification at another fence, if one is still unsaid."""
        if claimed.fence <= 1:
            return None  # nobody has sent it before
        known = (*self._words.values(), *self._given_up, *self._untold)
        return next((s for s in known if s.claimed.id == claimed.id and s.outcome), None)

    def heard(self, held: Held) -> Saying | None:
        said = self._words.pop(held, None)
        if said is not None and said.parked:
            self._untold.append(said)  # parked without saying all it knew
        return said

    def give_up(self, held: Held) -> None:
        """The database will not take it in any form: it leaves with the unsaid ones."""
        if said := self._words.pop(held, None):
            self._given_up.append(said)

    def still_held(self, channel: ChannelId) -> int:
        """Rows given up on: nobody works on them, but their leases are still this run's."""
        return sum(said.channel == channel for said in self._given_up)

    def given_up(self) -> tuple[Held, ...]:
        """To be named by the last exchange, so that not even these wait for their lease to end."""
        return tuple(said.word.held for said in self._given_up)

    def unsaid(self) -> tuple[Unsaid, ...]:
        """Knowledge of sends that no database has confirmed."""
        left = (*self._untold, *self._given_up, *self._words.values())
        return tuple(
            Unsaid(said.word.held, outcome.value, facts, isinstance(said.outcome, Unregistered))
            for said in left
            if said.knowledge is not None
            for outcome, facts in (said.knowledge,)
        )
