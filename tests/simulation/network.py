"""Between a run and the database: what is lost, late, refused, or committed without anybody hearing of it."""

from collections.abc import Callable

from fencepost.core.exchange import Exchange, Exchanged, Failure, Verdict, Word
from fencepost.core.notification import AttemptOutcome, Held, NotificationId, RunId
from fencepost.core.step import Answered, Unanswered
from tests.simulation.faults import Fault
from tests.simulation.model import NOBODY
from tests.simulation.world import World

Deliver = Callable[[Answered | Unanswered], None]


class Network:
    """Carries exchanges, one world's worth."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.known_at_claim: dict[Held, frozenset[AttemptOutcome]] = {}

    def carry(self, said: Exchange, deliver: Deliver) -> None:
        """Bring an exchange to the database and an answer back, or not."""
        world, plan = self.world, self.world.plan
        there = world.rng.uniform(0.001, 0.02)
        timeout = world.timing.exchange_timeout_seconds
        if world.now < world.away_until:
            self._fail(there, Failure.AWAY, deliver)
        elif plan.strikes(Fault.RETRY):
            self._fail(there, Failure.RETRY, deliver)
        elif plan.strikes(Fault.REFUSED):
            self._fail(there, Failure.REFUSED, deliver)
        elif plan.strikes(Fault.LOST_REQUEST):
            self._fail(world.rng.choice((there, timeout)), Failure.UNKNOWN, deliver)
        elif plan.strikes(Fault.LOST_REPLY):
            world.after(there, lambda: self._commit(said))
            self._fail(world.rng.choice((2 * there, timeout)), Failure.UNKNOWN, deliver)
        elif plan.strikes(Fault.GHOST):
            self._fail(there, Failure.UNKNOWN, deliver)
            world.after(world.rng.uniform(0.0, 4.0), lambda: self._commit(said))
        else:
            slow = plan.strikes(Fault.SLOW_DATABASE)
            self._answer(said, there + (world.rng.uniform(0.1, 0.9) if slow else 0.0), deliver)

    def _answer(self, said: Exchange, there: float, deliver: Deliver) -> None:
        def arrives() -> None:
            answer = self._commit(said)
            back: Answered | Unanswered = Unanswered(Failure.DATA, "bad row")
            if answer is not None:
                back = Answered(answer)
            self.world.after(there, lambda: deliver(back))

        self.world.after(there, arrives)

    def _fail(self, after: float, failure: Failure, deliver: Deliver) -> None:
        self.world.after(after, lambda: deliver(Unanswered(failure, failure.value)))

    def _commit(self, said: Exchange) -> Exchanged | None:
        """One transaction; None: a data error, nothing was written."""
        if self._is_refused(said):
            return None
        world = self.world
        database = world.database
        before = {id: (row.run, row.fence) for id, row in database.queue.items()}
        delivered = {id for id, one in database.closed.items() if one.kind.value == "delivered"}
        answer = database.exchange(said)
        self._look(said, answer, before)
        gone = [id for id in delivered if world.database.state(id) != "delivered"]
        world.require(not gone, "G2: what is delivered stays delivered", ids=gone)
        return answer

    def _look(
        self, said: Exchange, answer: Exchanged, before: dict[NotificationId, tuple[RunId, int]]
    ) -> None:
        world, database = self.world, self.world.database
        world.require(database.conserved(), "G3: every notification is in one of open and closed")
        world.require(not database.second_closes, "G2: closes once", ids=database.second_closes)
        self._look_for_own_takeovers(said, answer)
        for row in answer.claimed:
            holder, fence = before.get(row.id, (NOBODY, row.fence - 1))
            taken_over = holder != NOBODY and row.fence == fence + 1
            world.require(row.doubt or not taken_over, "a takeover leaves doubt", held=row.held)
            if taken_over and not world.clock_jumped:
                undisturbed = world.at_peace.get(holder, bool)()
                world.require(not undisturbed, "a run that lives keeps its leases", held=row.held)
            known = frozenset(one.outcome for one in database.evidence[row.id])
            self.known_at_claim.setdefault(row.held, known)  # at the claim, not at its repeats
        self._look_at_holdings(said)
        kept = [held for held in said.renew if held not in answer.lost]
        settled = zip(said.settle, answer.verdicts, strict=True)
        kept += [word.held for word, verdict in settled if verdict is Verdict.APPLIED]
        for held in kept:
            holds = before.get(held.id) == (said.run, held.fence)
            world.require(holds, "G1: only the holder changes a row", held=held)
        for word, verdict in zip(said.settle, answer.verdicts, strict=True):
            world.verdicts[verdict] += 1
            self._look_at_word(word, verdict)

    def _look_for_own_takeovers(self, said: Exchange, answer: Exchanged) -> None:
        flying = {
            sending.claimed.id
            for row in answer.claimed
            for sending in self.world.ledger.of(row.id)
            if sending.run == said.run and not sending.replied
        }
        for _ in flying:
            self.world.fired(Fault.OWN_TAKEOVER)

    def _look_at_holdings(self, said: Exchange) -> None:
        """G5: a run never holds more than its slots; an ended one holds nothing."""
        world, database = self.world, self.world.database
        mine = [row for row in database.queue.values() if row.run == said.run]
        ended = said.run in database.runs and database.runs[said.run].ended
        world.require(not (ended and mine), "G5: an ended run holds no lease", rows=mine)
        for channel in database.channels.values():
            held = sum(row.channel == channel.id for row in mine)
            world.require(held <= channel.slots, "G5: never more than the free slots", held=held)

    def _look_at_word(self, word: Word, verdict: Verdict) -> None:
        taken = (Verdict.APPLIED, Verdict.LATE, Verdict.UNKNOWN, Verdict.CONFLICT)
        if verdict is Verdict.LATE:
            self.world.fired(Fault.LATE_REPLY)
        if word.outcome is AttemptOutcome.DELIVERED and verdict in taken:
            self.world.delivered_words.add(word.id)

    def _is_refused(self, said: Exchange) -> bool:
        world = self.world
        if not world.plan.on:
            return False
        quirks = world.quirks
        for fault, refused in (
            (Fault.BAD_CLAIM, any(want.channel in quirks.bad_claim for want in said.claim)),
            (Fault.BAD_REST, quirks.bad_rest and bool(said.renew or said.gates)),
            (Fault.HOPELESS_WORD, any(w.id in quirks.hopeless for w in said.settle)),
            (Fault.BAD_WORD, any(w.id in quirks.bad_word and not _parks(w) for w in said.settle)),
            (
                Fault.BAD_DETAIL,
                any(w.id in quirks.bad_detail and w.facts.detail for w in said.settle),
            ),
        ):
            if refused:
                world.fired(fault)
                return True
        return False


def _parks(word: Word) -> bool:
    return word.reason == "bad_row"
