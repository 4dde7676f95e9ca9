"""What a channel allows this run now: slots, pauses, rate. And what the run must still tell about it."""

from collections.abc import Callable

from fencepost.core.backoff import refunds, wait_seconds
from fencepost.core.breaker import CHANNEL, Breaker
from fencepost.core.channel import Channel, Facility
from fencepost.core.exchange import GateAnswer, GateWord, Want
from fencepost.core.gone import Mass
from fencepost.core.hosts import PATIENCE_SECONDS, Hosts, OriginOf
from fencepost.core.notification import ChannelId, Claimed
from fencepost.core.outcome import Outcome

LOOK_FROM_THE_START_EVERY = 20  # claims: expired leases and late commits lie before the hint
LOOK_FROM_THE_START_SECONDS = (
    1.0  # and no sooner: behind a held snapshot such a look costs tens of milliseconds
)
BUSY_SECONDS = 0.05  # a channel row held by another: asked again after this, doubling
BUSY_DOUBLINGS_MAX = 6
MASS_PAUSE_SECONDS = 900.0  # then as many again; an operator's `resume` is quicker


class Gate:
    """One channel's gate as one run knows it. Instants are the run's monotonic clock."""

    def __init__(
        self,
        channel: Channel,
        facility: Facility,
        now: float,
        *,
        origin_of: OriginOf | None = None,
    ) -> None:
        self.channel = channel
        self.hosts = Hosts(origin_of, channel.slots)
        self._breaker = Breaker(CHANNEL)
        self._mass = Mass(channel.policy.unregistered_max)
        self.facility = facility
        self.paused_until = now + max(channel.paused_for_seconds, 0.0)
        self.next_claim_at = now  # rate tokens, or a busy channel row
        self.dry = False  # a look from the start found less than was asked for
        self.skipped: str | None = None
        self._unsaid_from: float | None = None
        self._reason: str | None = None
        self._hinted_claims = 0  # since the last look from the start, at
        self._looked_at = now
        self._look_from_start = True
        self._busy = 0
        self._breaker.told(channel.pause_reason, self.paused_until)

    @property
    def id(self) -> ChannelId:
        return self.channel.id

    @property
    def slots(self) -> int:
        """Half-open it sends one at a time."""
        return self.channel.slots if self._breaker.closed else 1

    def opens_at(self) -> float:
        return max(self.paused_until, self.next_claim_at)

    def is_paused(self, now: float) -> bool:
        return self.paused_until > now

    def is_open(self, now: float) -> bool:
        return self.skipped is None and self.opens_at() <= now

    def is_hungry(self, now: float) -> bool:
        """Open, and as far as is known there is more to claim."""
        return self.is_open(now) and not self.dry

    def is_done(self, stop_claiming: float) -> bool:
        """Nothing more will come of it in this run."""
        return self.skipped is not None or self.dry or self.opens_at() >= stop_claiming

    def want(self, free: int) -> Want:
        """Ask for the free slots: with a hint, except at first, now and then, and after a look that fell short."""
        return Want(channel=self.id, limit=free, hint=not self._look_from_start)

    def claimed(self, want: Want, got: int, answer: GateAnswer | None, now: float) -> None:
        """Learn from what a claim brought. No answer: the channel's row was busy."""
        self._count(want, now)
        if got >= want.limit:
            self.dry, self._look_from_start, self._busy = False, self._is_look_due(now), 0
        elif answer is None:
            self._wait_for_busy(now)
        elif answer.token_in_seconds <= 0 and answer.paused_for_seconds <= 0:
            self.dry = self.dry or not want.hint
            self._look_from_start, self._busy = want.hint, 0

    def _count(self, want: Want, now: float) -> None:
        self._hinted_claims += 1
        if not want.hint:
            self._hinted_claims, self._looked_at = 0, now

    def _is_look_due(self, now: float) -> bool:
        many = self._hinted_claims + 1 >= LOOK_FROM_THE_START_EVERY
        return many and now - self._looked_at >= LOOK_FROM_THE_START_SECONDS

    def _wait_for_busy(self, now: float) -> None:
        """A channel that never answers (removed meanwhile) must not be asked for ever."""
        self._busy += 1
        self.next_claim_at = now + BUSY_SECONDS * 2.0**self._busy
        self.dry = self.dry or self._busy > BUSY_DOUBLINGS_MAX

    def answered(self, answer: GateAnswer, now: float) -> None:
        """The database's word on the gate outranks ours, except for what it has not been told yet.

        A newer revision than this run started with: an operator changed the channel, and what this run knows
        about the old one stays true for its own sends, but is no longer the database's concern.
        """
        self.next_claim_at = now + max(answer.token_in_seconds, 0.0)
        if self._unsaid_from is not None and self.is_paused(now):
            return
        self._unsaid_from = None
        told = now + max(answer.paused_for_seconds, 0.0)
        outdated = answer.revision != self.channel.revision
        self.paused_until = max(self.paused_until, told) if outdated else told
        self._breaker.told(answer.reason, told)

    def learn(self, recipient: str, outcome: Outcome, now: float, roll: float) -> GateWord | None:
        """What the end of a send tells of its channel or host; a word where the channel pauses for it.

        Where each recipient names its own host, the hosts break and not the channel.
        """
        wish = self.channel.policy.retry_after_max_seconds
        self.hosts.hear(recipient, outcome, now, retry_after_max=wish, roll=roll)
        if (why := self._mass.hear(outcome)) is not None:
            return self._word(MASS_PAUSE_SECONDS, why)
        if self.hosts.apart or (why := self._breaker.hear(outcome, now, roll)) is None:
            return None
        return self._word(self._breaker.open_until - now, why)

    def host_wait(self, claimed: Claimed, now: float, roll: Callable[[], float]) -> float:
        """How long its host is left alone: the more often the row was given back, the longer, and spread out."""
        wait = self.hosts.wait_seconds(claimed.recipient, now)
        if wait <= 0.0 and self.is_patience_over(claimed, now):
            wait = PATIENCE_SECONDS
        if wait <= 0.0:
            return 0.0
        number, policy = refunds(claimed), self.channel.policy
        return wait + wait_seconds(number, retry_after_seconds=None, policy=policy, roll=roll())

    def is_in_line(self, claimed: Claimed, now: float) -> bool:
        """Whether it waits for an answer of its host to another."""
        until = self.hosts.in_line_until(claimed.recipient)
        return until is not None and until > now

    def is_patience_over(self, claimed: Claimed, now: float) -> bool:
        until = self.hosts.in_line_until(claimed.recipient)
        return until is not None and until <= now

    def _word(self, seconds: float, why: str) -> GateWord:
        revision = self.channel.revision
        return GateWord(channel=self.id, revision=revision, pause_seconds=seconds, reason=why)

    def pause(self, word: GateWord, now: float) -> bool:
        """Close it at once for this run; True where it was open until now."""
        seconds = word.pause_seconds or 0.0
        news = not self.is_paused(now)
        if now + seconds > self.paused_until:
            self.paused_until = now + seconds
            self._reason = word.reason
            self._unsaid_from = now
        return news

    def skip(self, why: str) -> None:
        """This run claims no more of it."""
        self.skipped = why

    def say_at(self) -> float | None:
        """From when the database should be told of a pause; None: it knows."""
        return self._unsaid_from

    def unsaid_word(self, now: float) -> GateWord | None:
        """The pause the database has not heard of, counted from now, under the revision this run started with."""
        if self._unsaid_from is None or self._unsaid_from > now or self.paused_until <= now:
            return None
        return GateWord(
            channel=self.id,
            revision=self.channel.revision,
            pause_seconds=self.paused_until - now,
            reason=self._reason,
        )

    def said(self) -> None:
        """It is on its way; what is learnt from here on is unsaid again."""
        self._unsaid_from = None

    def unheard(self, now: float) -> None:
        """The channel's row was busy, or nobody heard: say it again a little later, if it still matters."""
        if self.paused_until > now:
            self._unsaid_from = now + BUSY_SECONDS
