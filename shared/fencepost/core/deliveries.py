"""The rows of a run from claim to word: what is sent, asked, closed unsent, given back, or waits to be alone."""

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core import doubt, reason
from fencepost.core.asking import ASKED_NOT_THERE, AskLater, after_asking
from fencepost.core.budget import Budget
from fencepost.core.doubt import AskProvider, AwaitEvidence, CloseUnsent, SendIt
from fencepost.core.exchange import NO_FACTS, Facts, Word
from fencepost.core.fact import GatePaused
from fencepost.core.gate import Gate
from fencepost.core.gates import Gates
from fencepost.core.inflight import IN_THE_AIR, INTERRUPTIONS_ALONE, Flight, Inflight, Stage
from fencepost.core.notification import ChannelId, Claimed, Held
from fencepost.core.outcome import Delivered, NotSent, Outcome
from fencepost.core.step import Ask, Asked, Cancel, Command, Replied, Report, Send
from fencepost.core.transition import Sent, transition
from fencepost.core.words import Words, saying, unsent


class Deliveries(Struct, kw_only=True):
    """Decides about rows; `out` collects the commands of the current step."""

    budget: Budget
    gates: Gates
    inflight: Inflight
    words: Words
    roll: Callable[[], float]
    out: list[Command]
    lonely_given_back: int = 0  # rows that must be alone, given back since one last began to wait

    def occupied(self, channel: ChannelId) -> int:
        """Slots of a channel in use."""
        return self.inflight.occupied(channel) + self.words.still_held(channel)

    # --- rows come in

    def receive(self, rows: Iterable[Claimed], asked_at: float, now: float) -> None:
        """Each row of a claim is begun, closed or given back now; at most one waits to be sent alone."""
        for claimed in rows:
            if self.inflight.get(claimed.held) is None and claimed.held not in self.words:
                until = asked_at + claimed.lease_left_seconds
                flight = Flight(
                    claimed=claimed, stage=Stage.WAITING, asked_at=asked_at, lease_until=until
                )
                self._receive_one(flight, now)

    def _receive_one(self, flight: Flight, now: float) -> None:
        claimed = flight.claimed
        earlier = self.words.about(claimed)
        if earlier is not None and earlier.outcome is not None:
            self._settle_shadow(flight, earlier.outcome, now)
        elif self.inflight.airborne(claimed.id):
            flight.stage = Stage.SHADOW
            self.inflight.add(flight)
        else:
            self._begin(flight, now)

    def _begin(self, flight: Flight, now: float) -> None:
        gate = self.gates[flight.claimed.channel]
        if gate.is_paused(now):
            self._give_back(flight, gate.paused_until - now)
        else:
            self._act(flight, self._advice(flight, now), now)

    def _advice(self, flight: Flight, now: float) -> doubt.Advice:
        gate = self.gates[flight.claimed.channel]
        return doubt.advise(
            flight.claimed,
            gate.channel,
            gate.facility,
            elapsed_seconds=now - flight.asked_at,
            margin_seconds=self.budget.timing.send_timeout_seconds,
        )

    def _act(self, flight: Flight, advice: doubt.Advice, now: float) -> None:
        gate = self.gates[flight.claimed.channel]
        match advice:
            case CloseUnsent(word):
                self.words.add(saying(word, flight.claimed))
            case AwaitEvidence(delay):
                self._give_back(flight, delay)
            case SendIt() | AskProvider() if not self.budget.may_start(now, flight.lease_until):
                self._give_back(flight)
            case SendIt() if (wait := gate.host_wait(flight.claimed, now, self.roll)) > 0.0:
                self._give_back(flight, wait)
            case SendIt() | AskProvider() if self._must_be_alone(flight):
                self._wait_alone(flight)
            case SendIt() if gate.is_in_line(flight.claimed, now):
                self._lift(flight, Stage.IN_LINE)
            case SendIt():
                self._send(flight, now)
            case AskProvider():
                self._ask(flight)
            case _:
                assert_never(advice)

    # --- rows whose host has not answered yet

    def _begin_in_line(self, now: float) -> None:
        """Its host answered, or has room: it goes. Or nobody waits for it any more: given back."""
        for flight in self.inflight.at(Stage.IN_LINE):
            gate = self.gates[flight.claimed.channel]
            if gate.is_paused(now) or not gate.is_in_line(flight.claimed, now):
                self.inflight.remove(flight.claimed.held)
                self._begin(flight, now)

    def line_ends_at(self) -> float | None:
        """When the first in line has waited long enough."""
        line = (flight.claimed for flight in self.inflight.at(Stage.IN_LINE))
        ends = (self.gates[one.channel].hosts.in_line_until(one.recipient) for one in line)
        return min((at for at in ends if at is not None), default=None)

    # --- rows that are sent alone

    def _must_be_alone(self, flight: Flight) -> bool:
        return flight.claimed.interruptions >= INTERRUPTIONS_ALONE

    def _wait_alone(self, flight: Flight) -> None:
        """One waits. Others like it are given back, spread out: a run that dies must not hold them too."""
        if self.inflight.at(Stage.WAITING) or self.words.given_up():
            self.lonely_given_back += 1
            self._give_back(flight, self.roll() * self.lonely_given_back)
        else:
            self.lonely_given_back = 0
            self.inflight.add(flight)

    def one_alone(self) -> bool:
        """Whether a row waits to be sent alone, or is being sent alone: nothing is claimed meanwhile."""
        return bool(self.inflight.lonely())

    def begin_waiting(self, now: float) -> None:
        """Those in line whose host answered; and the lonely, where nothing else is held and nothing is unsaid."""
        self._begin_in_line(now)
        for flight in self.inflight.at(Stage.WAITING):
            if self.words.given_up():  # never alone any more: another run is
                self.inflight.remove(flight.claimed.held)
                self._wait_alone(flight)
            elif len(self.inflight) == 1 and not len(self.words):
                self._take_turn(flight, now)

    def _take_turn(self, flight: Flight, now: float) -> None:
        gate = self.gates[flight.claimed.channel]
        fits = self.budget.may_start(now, flight.lease_until)
        if not fits and not flight.renewed and self.budget.renewal_helps(now, flight.lease_until):
            self.inflight.want_renewal(
                flight
            )  # it waited its lease away: once more, then it goes back
            return
        self.inflight.remove(flight.claimed.held)
        match self._advice(flight, now):
            case SendIt() if (wait := gate.host_wait(flight.claimed, now, self.roll)) > 0.0:
                self._give_back(flight, wait)
            case SendIt() if fits and not gate.is_paused(now):
                self._send(flight, now)
            case AskProvider() if fits and not gate.is_paused(now):
                self._ask(flight)
            case CloseUnsent(word):
                self.words.add(saying(word, flight.claimed))
            case AwaitEvidence(delay):
                self._give_back(flight, delay)
            case _:
                self._give_back(flight, max(gate.paused_until - now, 0.0))

    # --- into the air

    def _send(self, flight: Flight, now: float) -> None:
        self._lift(flight, Stage.SENDING)
        hosts = self.gates[flight.claimed.channel].hosts
        timeout = self.budget.timing.send_timeout_seconds
        hosts.began(flight.claimed.recipient, now, timeout)
        # a row that waited or was asked about: durations count from the claim, the sender wants them now
        self.out.append(Send(flight.as_it_is(now), timeout_seconds=timeout))

    def _ask(self, flight: Flight) -> None:
        self._lift(flight, Stage.ASKING)
        timeout = self.budget.timing.send_timeout_seconds
        self.out.append(Ask(flight.claimed, timeout_seconds=timeout))

    def _lift(self, flight: Flight, stage: Stage) -> None:
        flight.stage = stage
        self.inflight.add(flight)

    def _give_back(self, flight: Flight, delay_seconds: float = 0.0) -> None:
        """Nothing was begun: the attempt is refunded."""
        claimed = flight.claimed
        word = Word(
            id=claimed.id, fence=claimed.fence, delay_seconds=delay_seconds, reason=reason.RELEASED
        )
        self.words.add(saying(word, claimed))

    # --- what comes back

    def replied(self, event: Replied, now: float) -> None:
        """A send ended: its word, its channel's gate, and the newer fences that waited for it."""
        flight = self.inflight.get(event.held)
        if flight is None or flight.stage is not Stage.SENDING:
            return
        self.inflight.remove(event.held)
        gate = self.gates[flight.claimed.channel]
        gate.hosts.ended(flight.claimed.recipient, event.facts.phase)
        facts = event.facts
        if flight.asked and isinstance(event.outcome, Delivered):
            facts = replace(facts, detail=ASKED_NOT_THERE)
        settled = transition(self._sent(flight, facts, now), event.outcome)
        self.words.add(saying(settled.word, flight.claimed, event.outcome))
        learnt, took = None, (event.facts.took_ms or 0) / 1000.0
        # what we stopped ourselves, or slept through, says nothing of the provider
        if not flight.cancelled and self.budget.kept_up(took, now, flight.lease_until):
            learnt = gate.learn(flight.claimed.recipient, event.outcome, now, self.roll())
        if (word := settled.gate or learnt) is not None and gate.pause(word, now):
            self.out.append(Report(_paused(word.reason, gate, now)))
        self._settle_shadows(flight, event.outcome, now)

    def asked(self, event: Asked, now: float) -> None:
        """The provider's answer about an earlier attempt decides; a lost row is left to its new holder."""
        flight = self.inflight.get(event.held)
        if flight is None or flight.stage is not Stage.ASKING:
            return
        self.inflight.remove(event.held)
        answer = after_asking(self._sent(flight, NO_FACTS, now), event.outcome)
        if isinstance(answer, AskLater):
            self.words.add(saying(answer.word, flight.claimed))
        elif isinstance(answer, SendIt) and self._cannot_go_on(flight, now):
            gate = self.gates[flight.claimed.channel]
            self._give_back(flight, max(gate.paused_until - now, 0.0))
        elif isinstance(answer, SendIt):
            flight.asked = True
            self._send(flight, now)
        else:
            self._act(flight, answer, now)
        if self.inflight.get(event.held) is None:
            told = None if isinstance(answer, AskLater) else event.outcome
            self._settle_shadows(flight, told or NotSent("its provider could not say"), now)

    def _cannot_go_on(self, flight: Flight, now: float) -> bool:
        newer = self.inflight.shadows_of(flight.claimed.id)
        paused = self.gates[flight.claimed.channel].is_paused(now)
        stopped = flight.cancelled or bool(newer) or paused  # a lost one is cancelled
        return stopped or not self.budget.may_start(now, flight.lease_until)

    def _settle_shadows(self, flight: Flight, outcome: Outcome, now: float) -> None:
        for shadow in self.inflight.shadows_of(flight.claimed.id):
            self.inflight.remove(shadow.claimed.held)
            self._settle_shadow(shadow, outcome, now)

    def _settle_shadow(self, shadow: Flight, outcome: Outcome, now: float) -> None:
        """A newer fence of a row this run has sent itself: what that send came to settles it, nothing is sent."""
        word = transition(self._sent(shadow, NO_FACTS, now), outcome).word
        self.words.add(saying(unsent(word), shadow.claimed))

    def _sent(self, flight: Flight, facts: Facts, now: float) -> Sent:
        gate = self.gates[flight.claimed.channel]
        return Sent(
            claimed=flight.claimed,
            channel=gate.channel,
            facility=gate.facility,
            facts=facts,
            roll=self.roll(),
            elapsed_seconds=now - flight.asked_at,
            margin_seconds=self.budget.timing.send_timeout_seconds,
        )

    # --- stopping

    def lost(self, helds: Iterable[Held]) -> None:
        """Another holds these now: stop the work on them. What comes back all the same is evidence."""
        for held in helds:
            flight = self.inflight.get(held)
            if flight is None:
                continue
            flight.lost = True
            if flight.stage in IN_THE_AIR:
                self._cancel(flight)
            else:
                self.inflight.remove(held)

    def cancel_all(self) -> None:
        for flight in self.inflight:
            if flight.stage in IN_THE_AIR:
                self._cancel(flight)

    def _cancel(self, flight: Flight) -> None:
        if not flight.cancelled:
            flight.cancelled = True
            self.out.append(Cancel(flight.claimed.held))

    def release_waiting(self) -> None:
        """Nothing new starts any more."""
        for flight in (*self.inflight.at(Stage.WAITING), *self.inflight.at(Stage.IN_LINE)):
            self.inflight.remove(flight.claimed.held)
            self._give_back(flight)


def _paused(why: str | None, gate: Gate, now: float) -> GatePaused:
    return GatePaused(channel=gate.id, seconds=gate.paused_until - now, reason=why or "")
