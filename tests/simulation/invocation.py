"""One invocation: a run, the driver around it in virtual time, and what must hold at each of its commands."""

from collections import Counter
from typing import assert_never

from fencepost.core.exchange import Exchange, Facts, Failure
from fencepost.core.fact import GatePaused
from fencepost.core.notification import AttemptOutcome, Claimed, Held
from fencepost.core.outcome import Delivered, Failed, NotSent, Outcome, Rejected, Uncertain
from fencepost.core.repeat import OTHER_BYTES, refused_repeat
from fencepost.core.reply import Phase
from fencepost.core.run import Run
from fencepost.core.step import (
    Answered,
    Ask,
    Asked,
    Cancel,
    Command,
    Event,
    Finish,
    Replied,
    Report,
    Say,
    Send,
    Started,
    Tick,
    Unanswered,
    Unsaid,
)
from tests.simulation.faults import Fault
from tests.simulation.network import Network
from tests.simulation.provider import Sending, fate
from tests.simulation.world import FACILITIES, HOLDING, KEYED, POLICY, TELLING, World

STEPS_AT_ONE_INSTANT = 60
STEPS_MAX = 20_000


class Invocation:
    """A run in its sandbox."""

    def __init__(self, world: World, network: Network, *, lasts: float) -> None:
        self.world, self.network = world, network
        self.run_id = world.new_run()
        self.began_at, self.hard_end = world.now, world.now + lasts
        self.cancelled: set[Held] = set()
        self.run = Run(
            run=self.run_id,
            timing=world.timing,
            hard_end=self.hard_end,
            now=world.now,
            roll=world.rng.random,
        )
        self.alive, self.finished = True, False
        self.frozen_until = world.now
        self.version = b"v2" if world.plan.strikes(Fault.OTHER_BYTES) else b"v1"
        self.flights: dict[Held, Sending | None] = {}  # None: asking
        self.said: Exchange | None = None  # under way
        self.unheard: tuple[Exchange, Failure] | None = None  # the last, if it was not answered
        self.last_seq = 0
        self.steps: Counter[float] = Counter()
        self.known: dict[Held, Outcome] = {}  # replies whose words no database has heard
        self.trouble: set[Failure] = set()
        self.was_frozen = False
        self._wake = 0
        world.at_peace[self.run_id] = self._at_peace
        channels = world.database.start_run(self.run_id)
        self.feed(Started(channels, FACILITIES, origins={KEYED: str}))

    # --- events in

    def feed(self, event: Event) -> None:
        """Give the run an event, when it is awake."""
        if not self.alive or self.finished:
            return
        if self.world.now < self.frozen_until:
            self.world.at(self.frozen_until, lambda: self.feed(event))
            return
        self._count_step()
        self._note(event)
        for command in self.run.step(event, self.world.now):
            if self.alive:
                self._carry_out(command)
        if isinstance(event, Answered):
            self._look_at_lost(event)
        self._plan_wake()

    def _count_step(self) -> None:
        self.steps[self.world.now] += 1
        calm = self.steps[self.world.now] < STEPS_AT_ONE_INSTANT and len(self.steps) < STEPS_MAX
        self.world.require(calm, "a run does not spin")

    def _note(self, event: Event) -> None:
        if isinstance(event, Answered) and self.said is not None:
            for word in self.said.settle:
                self.known.pop(word.held, None)
            self.said = self.unheard = None
        if isinstance(event, Unanswered) and self.said is not None:
            self.unheard, self.said = (self.said, event.failure), None
            self.trouble.add(event.failure)
        if isinstance(event, Replied):
            self.known[event.held] = event.outcome

    def _plan_wake(self) -> None:
        wake_at = self.run.wake_at()
        self.world.require(
            self.finished or not self.alive or wake_at is not None, "a run that lives wakes again"
        )
        if wake_at is None or self.finished:
            return
        self._wake += 1
        mine = self._wake
        self.world.at(wake_at, lambda: self.feed(Tick()) if mine == self._wake else None)

    # --- commands out

    def _carry_out(self, command: Command) -> None:
        self.world.require(not self.finished, "nothing follows Finish", command=command)
        match command:
            case Say(exchange):
                self._say(exchange)
            case Send(claimed, timeout):
                self._send(claimed, timeout)
            case Ask(claimed, timeout):
                self._ask(claimed, timeout)
            case Cancel(held):
                self._cancel(held)
            case Finish(unsaid):
                self._finish(unsaid)
            case Report(GatePaused(reason=why)):
                self._count_pause(why)
            case Report():
                pass
            case _:
                assert_never(command)

    def _count_pause(self, why: str) -> None:
        fired = self.world.plan.fired
        fired[Fault.BREAKER] += why.startswith("breaker ")
        fired[Fault.MASS] += why.startswith("unregistered:")

    def _say(self, exchange: Exchange) -> None:
        world, now = self.world, self.world.now
        world.require(self.said is None, "one exchange at a time")
        self._look_at_seq(exchange)
        late = now >= self.hard_end - self.world.timing.send_and_settle_seconds
        world.require(not (exchange.claim and late), "nothing is claimed after stop_claiming")
        reach = self.hard_end + self.world.timing.lease_margin_seconds + 0.002
        world.require(now + exchange.lease_seconds <= reach, "no lease outlives the end by more")
        world.require(
            not (exchange.last and self.flights), "the last word comes after the last send"
        )
        self.said, self.last_seq = exchange, exchange.seq
        self.network.carry(exchange, self.feed)

    def _look_at_seq(self, exchange: Exchange) -> None:
        world = self.world
        if self.unheard is None:
            world.require(exchange.seq == self.last_seq + 1, "a new seq after an answer")
            return
        before, failure = self.unheard
        world.require(exchange.seq == before.seq, "no new seq before the answer was read")
        if failure is Failure.UNKNOWN:
            same = set(before.settle) <= set(exchange.settle)
            world.require(same, "after an unknown answer the same words again")

    def _send(self, claimed: Claimed, timeout: float) -> None:
        self._look_at_budget(claimed)
        self._look_at_rivals(claimed)
        self._look_at_row(claimed)
        world = self.world
        sending = fate(world, claimed, self.run_id, timeout)
        sending.digest = self.version * 8
        refused = refused_repeat(claimed, sending.digest, FACILITIES[claimed.channel])
        if refused is not None:
            sending.outcome, sending.accepted_at, sending.left = refused, None, False
        self.flights[claimed.held] = sending
        if sending.left:
            self._look_at_repeats(sending)
        world.ledger.add(sending)
        world.at(sending.replies_at, lambda: self._reply(sending))
        if claimed.id in world.quirks.killers and world.plan.on:
            world.fired(Fault.KILLER)
            self.crash()

    def _reply(self, sending: Sending) -> None:
        if sending.replied or not self.alive:
            return
        if self.world.now < self.frozen_until:
            self.world.at(self.frozen_until, lambda: self._reply(sending))
            return
        sending.replied = True
        self.flights.pop(sending.held, None)
        self.feed(Replied(sending.held, sending.outcome, _facts(sending)))

    def _cancel(self, held: Held) -> None:
        self.cancelled.add(held)
        self.world.require(held in self.flights, "only what flies is cancelled", held=held)
        sending = self.flights[held]
        if sending is None:
            del self.flights[held]
            self.world.after(0.001, lambda: self.feed(Asked(held, None)))
        elif not sending.replied:
            self._stop(sending)
            self.world.after(0.001, lambda: self._reply(sending))

    def _stop(self, sending: Sending) -> None:
        """What was not accepted yet is not accepted any more, unless the provider is deaf to the cancel."""
        if not sending.left:
            sending.outcome = NotSent("stopped") if _is_not_sent(sending) else sending.outcome
            return
        accepted = sending.accepted_at is not None and sending.accepted_at <= self.world.now
        sending.outcome = Uncertain("stopped")
        if accepted or sending.accepted_at is None:
            return
        if not self.world.plan.strikes(Fault.DEAF_CANCEL):
            sending.accepted_at = None

    def _ask(self, claimed: Claimed, timeout: float) -> None:
        self._look_at_rivals(claimed)
        self.flights[claimed.held] = None
        world = self.world

        def answers() -> None:
            if self.flights.get(claimed.held, self) is not None:
                return
            if world.now < self.frozen_until:
                world.at(self.frozen_until, answers)
                return
            del self.flights[claimed.held]
            self.feed(Asked(claimed.held, self._truth(claimed)))

        world.after(world.rng.uniform(0.01, 0.5) * timeout, answers)

    def _truth(self, claimed: Claimed) -> Outcome | None:
        """The provider knows what it accepted; of what may still arrive it cannot say."""
        sendings = [s for s in self.world.ledger.of(claimed.id) if s.accepted_at is not None]
        if any(s.accepted_at <= self.world.now for s in sendings if s.accepted_at is not None):
            return Delivered("looked up")
        if sendings or (self.world.plan.on and self.world.rng.random() < 0.1):
            return None
        return Failed("never seen")

    def _finish(self, unsaid: tuple[Unsaid, ...]) -> None:
        self.finished = True
        world, database = self.world, self.world.database
        in_time = self.world.now <= self.hard_end or self.frozen_until >= self.world.now
        world.require(in_time, "a run that is not frozen ends in time")
        if database.runs[self.run_id].ended:
            mine = [row for row in database.queue.values() if row.run == self.run_id]
            world.require(not mine, "G5: a clean end holds no lease", rows=mine)
        self._look_at_the_end(unsaid)
        for word in unsaid:
            self._leave_message(word)

    def _leave_message(self, word: Unsaid) -> None:
        """The queue brings it to the database some time later."""
        world = self.world
        world.fired(Fault.UNSAID)

        def arrives() -> None:
            outcome = AttemptOutcome(word.outcome)
            world.database.note("late", word.held.id, outcome, fence=word.held.fence)
            if outcome is AttemptOutcome.DELIVERED:
                world.delivered_words.add(word.held.id)

        world.after(world.rng.uniform(0.5, 5.0), arrives)

    # --- what befalls it

    def crash(self) -> None:
        self.alive = False

    def freeze(self, seconds: float) -> None:
        self.was_frozen = True
        self.frozen_until = max(self.frozen_until, self.world.now + seconds)

    def _at_peace(self) -> bool:
        """Nothing befell it: its leases are its own."""
        lives = self.alive and not self.finished and self.world.now < self.hard_end
        slow = self.world.plan.has(Fault.SLOW_DATABASE)
        return lives and not self.was_frozen and not self.trouble and not slow

    # --- what must hold

    def _look_at_lost(self, event: Answered) -> None:
        for held in event.answer.lost:
            sending = self.flights.get(held)
            stopped = sending is None or held in self.cancelled
            self.world.require(stopped, "a lost lease stops the work on its row", held=held)

    def _look_at_the_end(self, unsaid: tuple[Unsaid, ...]) -> None:
        """G8 and G9: what is known leaves, and bad rows alone keep nobody from a clean end."""
        world = self.world
        left = {word.held for word in unsaid}
        silent = [held for held in self.known if held not in left and not self._parked(held)]
        world.require(not silent, "G8: what no database heard leaves with Finish", helds=silent)
        disturbed = self.was_frozen or not self.trouble <= {Failure.DATA}
        if disturbed or world.now > self.hard_end or self.hard_end - self.began_at < 1.0:
            return
        if self.said is not None or world.plan.has(Fault.SLOW_DATABASE):
            return
        bad = world.quirks.hopeless | world.quirks.bad_word
        strangers = [held for held in left if held.id not in bad]
        world.require(not strangers, "G9: a bad row silences no other", helds=strangers)
        ended = world.database.runs[self.run_id].ended
        world.require(ended, "G5: an undisturbed run says its last word", flights=self.flights)

    def _parked(self, held: Held) -> bool:
        """Refused before it left (other bytes), or given up: nothing is known of a send."""
        outcome = self.known[held]
        return isinstance(outcome, Rejected) and outcome.reason == OTHER_BYTES

    def _look_at_row(self, claimed: Claimed) -> None:
        world = self.world
        poison = claimed.interruptions >= POLICY.interruptions_max
        world.require(not poison, "what killed three runs is not sent", held=claimed.held)
        expires_at = world.database.notifications[claimed.id].expires_at
        fresh = expires_at is None or expires_at > world.database.now - 0.05 or world.clock_jumped
        world.require(fresh, "nothing expired is sent", held=claimed.held)

    def _look_at_budget(self, claimed: Claimed) -> None:
        """G4, by the database's own clock and row, which the run cannot see."""
        world, needed = self.world, self.world.timing.send_and_settle_seconds
        world.require(
            world.now + needed <= self.hard_end + 1e-6,
            "G4: no send without invocation time",
            held=claimed.held,
        )
        row = world.database.queue.get(claimed.id)
        if row is None or (row.run, row.fence) != (self.run_id, claimed.fence):
            return
        left = row.lease_until - world.database.now
        world.require(
            left >= needed - 1e-6 or world.clock_jumped,
            "G4: no send without lease",
            held=claimed.held,
            left=left,
        )

    def _look_at_rivals(self, claimed: Claimed) -> None:
        world = self.world
        same = [held for held in (*self.flights, *self.known) if held.id == claimed.id]
        world.require(not same, "a run never sends its own row twice", held=claimed.held)
        alone = claimed.interruptions >= 2 or any(
            flight is not None and flight.claimed.interruptions >= 2
            for flight in self.flights.values()
        )
        world.require(not (alone and self.flights), "a row interrupted twice is sent alone")
        if claimed.interruptions >= 2:
            rows = world.database.queue.values()
            others = [row.id for row in rows if row.run == self.run_id and row.id != claimed.id]
            world.require(not others, "whoever is sent alone is held alone", others=others)
        known = self.network.known_at_claim.get(claimed.held, frozenset())
        world.require(
            AttemptOutcome.DELIVERED not in known,
            "G8: nothing is sent that was known at the claim to be delivered",
            held=claimed.held,
        )

    def _look_at_repeats(self, sending: Sending) -> None:
        """G7: the same key always, the same bytes inside the window; policy hold: no second send in doubt."""
        world, claimed = self.world, sending.claimed
        key = world.ledger.keys.setdefault(claimed.id, claimed.idempotency_key)
        world.require(key == claimed.idempotency_key, "G7: one key", held=claimed.held)
        if claimed.channel == KEYED and claimed.first_digest is not None:
            self._look_at_bytes(sending)
        if claimed.channel in (HOLDING, TELLING) and claimed.id not in world.forced:
            maybe = [s.held for s in world.ledger.of(claimed.id) if s.accepted_at is not None]
            world.require(
                not maybe, "policy hold: never sent twice", held=claimed.held, first=maybe
            )

    def _look_at_bytes(self, sending: Sending) -> None:
        world, id = self.world, sending.claimed.id
        window = FACILITIES[KEYED].deduplicates_for_seconds or 0.0
        for attempt in world.database.attempts[id].values():
            young = world.database.now - attempt.claimed_at < window
            told = attempt.outcome in (AttemptOutcome.FAILED, AttemptOutcome.UNCERTAIN)
            other = attempt.digest is not None and attempt.digest != sending.digest
            world.require(
                not (young and told and other) or world.clock_jumped,
                "G7: no other bytes inside the key window",
                held=sending.held,
            )


def _facts(sending: Sending) -> Facts:
    phase = Phase.ANSWERED
    if _is_not_sent(sending):
        phase = Phase.NOT_SENT
    elif isinstance(sending.outcome, Uncertain):
        phase = Phase.UNCERTAIN
    return Facts(phase=phase, digest=sending.digest, took_ms=1, detail="d")


def _is_not_sent(sending: Sending) -> bool:
    refused = isinstance(sending.outcome, Rejected) and sending.outcome.reason == OTHER_BYTES
    return isinstance(sending.outcome, NotSent) or refused
