"""The database as plain Python: what the schema's functions mean, one transaction a call, on a clock of its own.

It is held to the same contract suite as the real store, and compared with it by a state machine. `Guards` are what
the schema relies on; a test takes them away one by one and sees the simulation go red.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from fencepost.core.channel import AttemptPolicy, Channel
from fencepost.core.exchange import Exchange, Exchanged, GateAnswer, Verdict, Word
from fencepost.core.notification import (
    AttemptOutcome,
    ChannelId,
    Claimed,
    Fence,
    Held,
    Kind,
    NotificationId,
    OnUncertain,
    RunId,
)
from tests.simulation.provider import HOSTS

NEVER = -math.inf
NOBODY = RunId(UUID(int=0))
LONGEST_LEASE_SECONDS = 900.0
LONGEST_DELAY_SECONDS = 2_592_000.0
PROBES_FOR_SECONDS = 600.0  # after a breaker's pause a run begins with a probe
LONGEST_PAUSE_SECONDS = 86_400.0
CLAIM_MAX = 1000
COUNTER_MAX = 32767

DELIVERED = AttemptOutcome.DELIVERED
UNCERTAIN = AttemptOutcome.UNCERTAIN
NOT_DELIVERED = frozenset({AttemptOutcome.REJECTED, AttemptOutcome.FAILED, AttemptOutcome.NOT_SENT})
KNOWLEDGE = NOT_DELIVERED | {DELIVERED}
BEST_FIRST = tuple(AttemptOutcome)


@dataclass(slots=True, kw_only=True)
class Guards:
    """What keeps the guarantees. All true, but in the tests of the tests."""

    fence: bool = True  # a word holds only at the fence and of the run that hold the row
    lease: bool = True  # a live lease is not taken
    doubt: bool = True  # a takeover leaves doubt
    seq: bool = True  # the same seq claims nothing new
    evidence: bool = True  # a claim tells what is known
    one_close: bool = True  # `closed` has a primary key


@dataclass(slots=True, kw_only=True)
class Body:
    """A row of `notification`."""

    id: NotificationId
    channel: ChannelId
    priority: int
    due_at: float
    expires_at: float | None
    on_uncertain: OnUncertain | None
    key: UUID
    redriven_at: float = NEVER


@dataclass(slots=True, kw_only=True)
class Open:
    """A row of `queue`."""

    id: NotificationId
    channel: ChannelId
    priority: int
    due_at: float
    lease_until: float = NEVER
    claimed_at: float = NEVER
    fence: int = 0
    run: RunId = NOBODY
    attempts: int = 0
    interruptions: int = 0
    doubt: bool = False
    resend: bool = False


@dataclass(slots=True, kw_only=True)
class Closed:
    """A row of `closed`, its closing attempt included."""

    id: NotificationId
    kind: Kind
    reason: str | None
    fence: int
    attempts: int
    run: RunId | None = None
    claimed_at: float | None = None
    outcome: AttemptOutcome | None = None
    digest: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Attempt:
    """A row of `attempt`."""

    run: RunId
    claimed_at: float
    outcome: AttemptOutcome
    taken_over: bool = False
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The key of a row of `evidence`."""

    fence: int
    run: RunId
    source: str
    outcome: AttemptOutcome


@dataclass(slots=True, kw_only=True)
class RunRow:
    seq: int = 0
    last_claim: tuple[NotificationId, ...] = ()
    hints: dict[tuple[ChannelId, int], float] = field(default_factory=dict)
    ended: bool = False


@dataclass(slots=True, kw_only=True)
class ChannelRow:
    """A row of `channel`."""

    id: ChannelId
    name: str
    on_uncertain: OnUncertain
    slots: int = 50
    rate: float | None = None
    burst: float | None = None
    policy: AttemptPolicy = field(default_factory=AttemptPolicy)
    revision: int = 1
    paused_until: float = NEVER
    pause_reason: str | None = None
    tokens: float = 0.0
    filled_at: float = NEVER
    busy: bool = False  # another transaction has its row

    def tokens_at(self, now: float) -> float:
        assert self.rate is not None
        size = self.burst if self.burst is not None else max(self.rate, 1.0)
        if self.filled_at == NEVER:
            return size
        return min(size, self.tokens + self.rate * max(0.0, now - self.filled_at))

    def take(self, count: int, now: float) -> None:
        self.tokens, self.filled_at = self.tokens_at(now) - count, now

    def as_channel(self, now: float) -> Channel:
        paused = max(0.0, self.paused_until - now)
        return Channel(
            id=self.id,
            name=self.name,
            sender="webhook",
            settings={},
            secret_reference=None,
            slots=self.slots,
            rate_per_second=self.rate,
            on_uncertain=self.on_uncertain,
            policy=self.policy,
            revision=self.revision,
            paused_for_seconds=paused,
            pause_reason=self.pause_reason if paused or self._just_broken(now) else None,
        )

    def _just_broken(self, now: float) -> bool:
        breaker = (self.pause_reason or "").startswith("breaker ")
        return breaker and self.paused_until > now - PROBES_FOR_SECONDS


class Database:
    """The tables and the functions that write them."""

    def __init__(self, guards: Guards | None = None) -> None:
        self.now = 0.0
        self.guards = guards or Guards()
        self.notifications: dict[NotificationId, Body] = {}
        self.queue: dict[NotificationId, Open] = {}
        self.closed: dict[NotificationId, Closed] = {}
        self.attempts: dict[NotificationId, dict[int, Attempt]] = {}
        self.evidence: dict[NotificationId, set[Evidence]] = {}
        self.runs: dict[RunId, RunRow] = {}
        self.channels: dict[ChannelId, ChannelRow] = {}
        self.closes = 0  # of the same notification, however often: a mutant may close twice
        self.second_closes: list[NotificationId] = []

    # --- producers and runs

    def enqueue(
        self,
        channel: ChannelId,
        *,
        priority: int = 1,
        due_in: float = 0.0,
        expires_in: float | None = None,
        on_uncertain: OnUncertain | None = None,
        key: UUID | None = None,
    ) -> NotificationId:
        id = NotificationId(len(self.notifications) + 1)
        due_at = self.now + due_in
        self.notifications[id] = Body(
            id=id,
            channel=channel,
            priority=priority,
            due_at=due_at,
            expires_at=None if expires_in is None else self.now + expires_in,
            on_uncertain=on_uncertain,
            key=key or uuid4(),
        )
        self.queue[id] = Open(id=id, channel=channel, priority=priority, due_at=due_at)
        self.attempts[id], self.evidence[id] = {}, set()
        return id

    def start_run(self, run: RunId) -> tuple[Channel, ...]:
        self.runs.setdefault(run, RunRow())
        return tuple(channel.as_channel(self.now) for channel in self.channels.values())

    def has_work(self, channels: Iterable[ChannelId]) -> bool:
        wanted = set(channels)
        return any(
            row.channel in wanted and self._is_free(row) and row.due_at <= self.now
            for row in self.queue.values()
            if self._allows(self.channels[row.channel]) > 0
        )

    # --- the exchange

    def exchange(self, said: Exchange) -> Exchanged:
        row = self.runs.get(said.run)
        alive = row is not None and not row.ended
        verdicts = self._settle(said, alive=alive)
        lost = tuple(held for held in said.renew if not (alive and self._renew(said, held)))
        busy = self._pause(said) if alive else set()
        claim: tuple[NotificationId, ...] = ()
        if row is not None and alive:
            claim, taking = self._last_or_claim(said, row)
            busy |= taking
        spoken = [word.channel for word in said.gates] + [want.channel for want in said.claim]
        return Exchanged(
            verdicts=verdicts,
            lost=lost,
            gates={id: self._gate(id) for id in spoken if id in self.channels and id not in busy},
            claimed=tuple(
                self._answer(self.queue[id])
                for id in claim
                if id in self.queue and self.queue[id].run == said.run
            ),
        )

    def _last_or_claim(
        self, said: Exchange, row: RunRow
    ) -> tuple[tuple[NotificationId, ...], set[ChannelId]]:
        if said.last:
            self._give_up(said.run, [held.id for held in said.renew], unheard=False)
            self._give_up(said.run, row.last_claim, unheard=said.seq == row.seq)
            row.seq, row.last_claim, row.ended = max(said.seq, row.seq), (), True
            return (), set()
        if said.seq > row.seq or not self.guards.seq:
            claim, taking = self._claim(said, row) if said.claim else ((), set())
            row.seq, row.last_claim = said.seq, claim
            return claim, taking
        return (row.last_claim if said.seq == row.seq else ()), set()

    # --- settle

    def _settle(self, said: Exchange, *, alive: bool) -> tuple[Verdict, ...]:
        words, done, twice = said.settle, set[int](), set[int]()
        if alive:
            before = {w.id for w in words if self._delivered_before(said.run, w)}
            for index in self._by_id(words):
                word = words[index]
                if word.id in before or word.kind is not None:
                    self._close(said.run, index, word, before, done, twice)
            for index in self._by_id(words):
                if index not in done and words[index].kind is None:
                    self._free(said.run, index, words[index], done)
            unsure = {AttemptOutcome.UNCERTAIN, AttemptOutcome.HELD}
            self._act([words[index].id for index in done if words[index].outcome in unsure])
            if len(done) == len(words) and not twice:
                return (Verdict.APPLIED,) * len(words)
        return self._late(said.run, words, done, twice)

    @staticmethod
    def _by_id(words: tuple[Word, ...]) -> list[int]:
        return sorted(range(len(words)), key=lambda index: (words[index].id, index))

    def _delivered_before(self, run: RunId, word: Word) -> bool:
        if word.fence <= 1 and word.outcome is DELIVERED:
            return False
        return any(
            known.outcome is DELIVERED
            and (
                word.outcome is not DELIVERED
                or known.fence not in (word.fence, 0)
                or known.run not in (run, NOBODY)
            )
            for known in self.evidence.get(word.id, ())
        )

    def _ours(self, run: RunId, word: Word | Held) -> Open | None:
        row = self.queue.get(word.id)
        if row is None:
            return None
        if not self.guards.fence:
            return row
        return row if (row.fence, row.run) == (word.fence, run) else None

    def _close(
        self,
        run: RunId,
        index: int,
        word: Word,
        before: set[NotificationId],
        done: set[int],
        twice: set[int],
    ) -> None:
        row = self._ours(run, word)
        if row is None:
            if not self.guards.one_close and word.id in self.closed:
                self.second_closes.append(word.id)
                done.add(index)
            return
        del self.queue[word.id]
        done.add(index)
        known = word.id in before
        if word.id in self.closed or (known and word.outcome is DELIVERED):
            twice.add(index)
        if word.id in self.closed:
            return
        reason = "conflict" if word.outcome is DELIVERED else "evidence"
        self.closed[word.id] = Closed(
            id=word.id,
            kind=Kind.DELIVERED if known else _kind(word),
            reason=reason if known else word.reason,
            fence=word.fence,
            run=run,
            claimed_at=row.claimed_at,
            attempts=max(row.attempts - _refund(word), 0),
            outcome=word.outcome,
            digest=word.facts.digest,
        )

    def _free(self, run: RunId, index: int, word: Word, done: set[int]) -> None:
        row = self._ours(run, word)
        if row is None:
            return
        done.add(index)
        if word.outcome is not None:
            self._write_attempt(row, run, word.outcome, digest=word.facts.digest)
        row.lease_until, row.run = NEVER, NOBODY
        row.doubt = row.doubt or word.outcome is UNCERTAIN
        row.attempts = max(row.attempts - _refund(word), 0)
        if word.delay_seconds > 0 or math.isnan(word.delay_seconds):
            row.due_at = self.now + _delay(word.delay_seconds)

    def _write_attempt(
        self,
        row: Open,
        run: RunId,
        outcome: AttemptOutcome,
        *,
        taken_over: bool = False,
        digest: bytes | None = None,
    ) -> None:
        self.attempts[row.id].setdefault(
            row.fence,
            Attempt(
                run=run,
                claimed_at=row.claimed_at,
                outcome=outcome,
                taken_over=taken_over,
                digest=digest,
            ),
        )

    def _late(
        self, run: RunId, words: tuple[Word, ...], done: set[int], twice: set[int]
    ) -> tuple[Verdict, ...]:
        verdicts, news = [], []
        for index, word in enumerate(words):
            verdict, outcome, known = self._verdict(run, word, index in done, index in twice)
            if verdict in (Verdict.LATE, Verdict.UNKNOWN) and (
                outcome is DELIVERED and self._delivered_elsewhere(run, word)
            ):
                verdicts.append(Verdict.CONFLICT)
            else:
                verdicts.append(verdict)
            homeless = index in twice and not known
            if (verdict in (Verdict.LATE, Verdict.UNKNOWN) or homeless) and outcome in KNOWLEDGE:
                news.append((word.id, word.fence, outcome))
        if news:
            self._note(run, "late", news)
        return tuple(verdicts)

    def _verdict(
        self, run: RunId, word: Word, done: bool, twice: bool
    ) -> tuple[Verdict, AttemptOutcome | None, bool]:
        """The verdict; what the word knows; whether an attempt of this run at this fence is written down."""
        there, written, taken_over = self._written(run, word)
        outcome = AttemptOutcome.NOT_SENT if word.outcome is None and taken_over else word.outcome
        if twice:
            return Verdict.CONFLICT, outcome, written is not None
        if done:
            return Verdict.APPLIED, outcome, True
        if taken_over:
            return Verdict.LATE, outcome, True
        if word.outcome is None or (there and written is word.outcome):
            return Verdict.REPEATED, outcome, there
        return (Verdict.LATE if written is not None else Verdict.UNKNOWN), outcome, there

    def _written(self, run: RunId, word: Word) -> tuple[bool, AttemptOutcome | None, bool]:
        attempt = self.attempts.get(word.id, {}).get(word.fence)
        if attempt is not None and attempt.run == run:
            return True, attempt.outcome, attempt.taken_over
        closed = self.closed.get(word.id)
        if closed is not None and (closed.fence, closed.run) == (word.fence, run):
            return True, closed.outcome, False
        return False, None, False

    def _delivered_elsewhere(self, run: RunId, word: Word) -> bool:
        me = (word.fence, run)
        closed = self.closed.get(word.id)
        if closed is not None and closed.outcome is DELIVERED and (closed.fence, closed.run) != me:
            return True
        attempts = self.attempts.get(word.id, {}).items()
        if any(a.outcome is DELIVERED and (fence, a.run) != me for fence, a in attempts):
            return True
        return any(
            known.outcome is DELIVERED
            and (known.fence not in (word.fence, 0) or known.run not in (run, NOBODY))
            for known in self.evidence.get(word.id, ())
        )

    # --- renew, gates, claim

    def _renew(self, said: Exchange, held: Held) -> bool:
        row = self._ours(said.run, held)
        if row is not None:
            row.lease_until = self.now + min(max(said.lease_seconds, 0.0), LONGEST_LEASE_SECONDS)
        return row is not None

    def _pause(self, said: Exchange) -> set[ChannelId]:
        busy = set()
        for word in said.gates:
            channel = self.channels.get(word.channel)
            if channel is None or word.pause_seconds is None or word.pause_seconds <= 0:
                continue
            if channel.busy:
                busy.add(channel.id)
                continue
            until = self.now + min(word.pause_seconds, LONGEST_PAUSE_SECONDS)
            if channel.revision == word.revision and channel.paused_until < until:
                channel.paused_until, channel.pause_reason = until, word.reason
        return busy

    def _gate(self, id: ChannelId) -> GateAnswer:
        channel = self.channels[id]
        paused = min(max(0.0, channel.paused_until - self.now), LONGEST_PAUSE_SECONDS)
        token_in = 0.0
        if channel.rate is not None:
            token_in = max(0.0, 1.0 - channel.tokens_at(self.now)) / channel.rate
        return GateAnswer(
            revision=channel.revision,
            paused_for_seconds=paused,
            reason=channel.pause_reason if paused else None,
            token_in_seconds=token_in,
        )

    def _allows(self, channel: ChannelRow) -> int:
        if channel.paused_until > self.now:
            return 0
        if channel.rate is None:
            return CLAIM_MAX
        return math.floor(channel.tokens_at(self.now))

    def _is_free(self, row: Open) -> bool:
        if not self.guards.lease:
            return True
        return row.lease_until <= self.now or row.lease_until > self.now + LONGEST_LEASE_SECONDS

    def _claim(
        self, said: Exchange, row: RunRow
    ) -> tuple[tuple[NotificationId, ...], set[ChannelId]]:
        hints = row.hints
        taking, taken, full = set(), list[Open](), set()
        for want in said.claim:
            channel = self.channels[want.channel]
            if channel.busy and channel.rate is not None and channel.paused_until <= self.now:
                taking.add(channel.id)
                continue
            limit = min(max(want.limit, 0), self._allows(channel))
            found = self._due(want.channel, limit, hints if want.hint else {})
            if found and len(found) >= limit:
                full.add(channel.id)
            if found and channel.rate is not None:
                channel.take(len(found), self.now)
            taken.extend(found)
        asked = {want.channel for want in said.claim}
        row.hints = self._next_hints(hints, taken, full, asked, self.now - 1.0)
        for one in taken:
            self._take(one, said)
        return tuple(one.id for one in taken), taking

    @staticmethod
    def _next_hints(
        old: dict[tuple[ChannelId, int], float],
        taken: list[Open],
        full: set[ChannelId],
        asked: set[ChannelId],
        passed: float,
    ) -> dict[tuple[ChannelId, int], float]:
        """A channel that gave less than it was asked for has none: the next look is from the beginning."""
        kept = {key: at for key, at in old.items() if key[0] in full or key[0] not in asked}
        new = dict[tuple[ChannelId, int], float]()
        for one in taken:
            if one.channel in full:
                key = (one.channel, one.priority)
                new[key] = max(one.due_at, new.get(key, NEVER))
                for priority in range(one.priority):  # passed by: it gave all it had
                    passed_by = (one.channel, priority)
                    new[passed_by] = max(passed, new.get(passed_by, NEVER))
        return kept | new

    def _due(
        self, channel: ChannelId, limit: int, hints: dict[tuple[ChannelId, int], float]
    ) -> list[Open]:
        rows = [
            row
            for row in self.queue.values()
            if row.channel == channel
            and row.due_at <= self.now
            and row.due_at >= hints.get((channel, row.priority), NEVER)
            and self._is_free(row)
        ]
        return sorted(rows, key=lambda row: (row.priority, row.due_at))[:limit]

    def _take(self, row: Open, said: Exchange) -> None:
        taken_over = row.run != NOBODY
        if taken_over:
            self._write_attempt(row, row.run, UNCERTAIN, taken_over=True)
            row.interruptions = min(row.interruptions + 1, COUNTER_MAX)
            row.doubt = row.doubt or self.guards.doubt
        row.fence, row.run, row.claimed_at = row.fence + 1, said.run, self.now
        row.attempts = min(row.attempts + 1, COUNTER_MAX)
        row.lease_until = self.now + min(max(said.lease_seconds, 0.0), LONGEST_LEASE_SECONDS)

    def _answer(self, row: Open) -> Claimed:
        body = self.notifications[row.id]
        first_at, digest = self._first_attempt(row)
        known = sorted((known.outcome for known in self.evidence[row.id]), key=BEST_FIRST.index)
        tells = self.guards.evidence and row.fence > 1 and bool(known)
        return Claimed(
            id=row.id,
            fence=Fence(row.fence),
            channel=row.channel,
            recipient=HOSTS[row.id % len(HOSTS)],
            payload={},
            idempotency_key=body.key,
            attempts=row.attempts,
            interruptions=row.interruptions,
            doubt=row.doubt,
            age_seconds=self.now - max(body.due_at, body.redriven_at),
            first_attempt_age_seconds=None if first_at is None else self.now - first_at,
            first_digest=digest,
            evidence=known[0] if tells else None,
            expires_in_seconds=None if body.expires_at is None else body.expires_at - self.now,
            lease_left_seconds=row.lease_until - self.now,
            on_uncertain=body.on_uncertain,
            doubt_age_seconds=self._doubt_age(row) if row.doubt else None,
            resend_ordered=row.resend,
        )

    def _doubt_age(self, row: Open) -> float | None:
        unknown = (a.claimed_at for a in self.attempts[row.id].values() if a.outcome is UNCERTAIN)
        latest = max(unknown, default=None)
        return None if latest is None else self.now - latest

    def _first_attempt(self, row: Open) -> tuple[float | None, bytes | None]:
        if row.fence <= 1:
            return None, None
        sent = sorted(
            (
                attempt
                for attempt in self.attempts[row.id].values()
                if attempt.outcome not in (AttemptOutcome.NOT_SENT, AttemptOutcome.HELD)
            ),
            key=lambda attempt: attempt.claimed_at,
        )
        digests = (attempt.digest for attempt in sent if attempt.digest is not None)
        return (sent[0].claimed_at if sent else None), next(digests, None)

    def _give_up(self, run: RunId, ids: Iterable[NotificationId], *, unheard: bool) -> None:
        ids = sorted(set(ids))
        for id in ids:
            row = self.queue.get(id)
            if row is None or row.run != run:
                continue
            if unheard:
                row.attempts = max(row.attempts - 1, 0)
            else:
                self._write_attempt(row, run, UNCERTAIN, taken_over=True)
                row.doubt = True
            row.lease_until, row.run = NEVER, NOBODY
        if not unheard:
            self._act(ids)

    # --- evidence

    def note(
        self,
        source: str,
        id: NotificationId,
        outcome: AttemptOutcome,
        *,
        fence: int | None = None,
    ) -> None:
        """A fact from outside any run; fence None: not known."""
        self._note(NOBODY, source, [(id, fence or 0, outcome)])

    def _note(
        self, run: RunId, source: str, facts: Sequence[tuple[NotificationId, int, AttemptOutcome]]
    ) -> None:
        for id, fence, outcome in facts:
            fences = [fence]
            if not fence and outcome is not DELIVERED:
                fences = self._doubtful_fences(id) or [0]
            if outcome in KNOWLEDGE:
                known = self.evidence.setdefault(id, set())
                known |= {Evidence(one, run, source, outcome) for one in fences}
        self._act([id for id, _, _ in facts])

    def _doubtful_fences(self, id: NotificationId) -> list[int]:
        fences = [fence for fence, a in self.attempts.get(id, {}).items() if a.outcome is UNCERTAIN]
        closed = self.closed.get(id)
        if closed is not None and closed.outcome is UNCERTAIN:
            fences.append(closed.fence)
        return fences

    def _act(self, ids: Iterable[NotificationId]) -> None:
        for id in sorted(set(ids)):
            known = {one.outcome for one in self.evidence.get(id, ())}
            if DELIVERED in known:
                self._deliver(id)
            elif known:
                self._clear([id])

    def _deliver(self, id: NotificationId) -> None:
        row = self.queue.get(id)
        if row is not None and row.run == NOBODY:
            del self.queue[id]
            self.closed.setdefault(
                id,
                Closed(
                    id=id,
                    kind=Kind.DELIVERED,
                    reason="evidence",
                    fence=row.fence + 1,
                    attempts=row.attempts,
                ),
            )
        closed = self.closed.get(id)
        if closed is not None and closed.kind is not Kind.DELIVERED:
            closed.kind, closed.reason = Kind.DELIVERED, "evidence"

    def is_doubtful(self, id: NotificationId) -> bool:
        """An attempt whose outcome is unknown, and of which no evidence says that it was not delivered."""
        unsure = [
            (fence, a.run)
            for fence, a in self.attempts.get(id, {}).items()
            if a.outcome is UNCERTAIN
        ]
        closed = self.closed.get(id)
        if closed is not None and closed.outcome is UNCERTAIN and closed.run is not None:
            unsure.append((closed.fence, closed.run))
        return any(not self._said_not_delivered(id, fence, run) for fence, run in unsure)

    def _said_not_delivered(self, id: NotificationId, fence: int, run: RunId) -> bool:
        return any(
            known.fence == fence and known.run in (run, NOBODY) and known.outcome in NOT_DELIVERED
            for known in self.evidence.get(id, ())
        )

    def _clear(self, ids: Iterable[NotificationId]) -> None:
        for id in sorted(set(ids)):
            if self.is_doubtful(id):
                continue
            row = self.queue.get(id)
            if row is not None and row.doubt:
                row.doubt = False
                row.due_at = min(row.due_at, self.now) if row.run == NOBODY else row.due_at
            closed = self.closed.get(id)
            if closed is None or closed.kind is not Kind.UNCERTAIN:
                continue
            if any(k.outcome is AttemptOutcome.REJECTED for k in self.evidence[id]):
                closed.kind, closed.reason = Kind.DEAD, "evidence"
            else:
                self._reopen(id, fresh=False, resend=False)

    def _reopen(self, id: NotificationId, *, fresh: bool, resend: bool) -> None:
        closed, body = self.closed[id], self.notifications[id]
        if closed.outcome is not None:
            self.attempts[id].setdefault(
                closed.fence,
                Attempt(
                    run=closed.run or NOBODY,
                    claimed_at=closed.claimed_at if closed.claimed_at is not None else self.now,
                    outcome=closed.outcome,
                    digest=closed.digest,
                ),
            )
        del self.closed[id]
        if fresh:
            body.redriven_at = self.now
        self.queue[id] = Open(
            id=id,
            channel=body.channel,
            priority=body.priority,
            due_at=self.now,
            fence=closed.fence + 1,
            attempts=0 if fresh else closed.attempts,
            doubt=self.is_doubtful(id),
            resend=resend,
        )

    # --- operators

    def state(self, id: NotificationId) -> str:
        if id in self.queue:
            return "open"
        return self.closed[id].kind.value if id in self.closed else "unknown"

    def cancel(self, id: NotificationId) -> str:
        row = self.queue.pop(id, None)
        if row is None:
            return self.state(id)
        leased = row.run != NOBODY
        if leased:
            self._write_attempt(row, row.run, UNCERTAIN, taken_over=True)
        known = any(known.outcome is DELIVERED for known in self.evidence[id])
        self.closed[id] = Closed(
            id=id,
            kind=Kind.DELIVERED if known else Kind.CANCELLED,
            reason="evidence" if known else "cancelled",
            fence=row.fence + 1,
            attempts=row.attempts,
        )
        if known:
            return "delivered"
        return "cancelled_leased" if leased else "cancelled"

    def redrive(self, id: NotificationId, *, resend: bool = False) -> str:
        closed = self.closed.get(id)
        if closed is not None and (
            closed.kind is Kind.DEAD or (resend and closed.kind is Kind.UNCERTAIN)
        ):
            self._reopen(id, fresh=True, resend=resend)
            return "redriven"
        return "needs_resend" if self.state(id) == "uncertain" else self.state(id)

    def resolve(self, id: NotificationId, outcome: str) -> str:
        facts = {
            "delivered": DELIVERED,
            "not_delivered": AttemptOutcome.NOT_SENT,
            "dead": AttemptOutcome.REJECTED,
        }
        if outcome != "dead" or self.state(id) != "open":
            self.note("operator", id, facts[outcome])
        return self.state(id)

    def quarantine(self) -> int:
        for row in self.queue.values():
            if row.run != NOBODY:
                self._write_attempt(row, row.run, UNCERTAIN, taken_over=True)
            row.fence, row.lease_until, row.run, row.doubt = row.fence + 1, NEVER, NOBODY, True
            row.claimed_at, kept = min(row.due_at, self.now), row.claimed_at
            self._write_attempt(row, NOBODY, UNCERTAIN, taken_over=True)
            row.claimed_at = kept
        return len(self.queue)

    def repair(self, id: ChannelId) -> None:
        """An operator's change: the pause is lifted, the revision raised."""
        channel = self.channels[id]
        channel.paused_until, channel.pause_reason = NEVER, None
        channel.revision += 1

    # --- proof

    def conserved(self) -> bool:
        """Every notification is in exactly one of open and closed, and nothing else is."""
        both = set(self.queue) & set(self.closed)
        return not both and set(self.queue) | set(self.closed) == set(self.notifications)


def _kind(word: Word) -> Kind:
    assert word.kind is not None
    return word.kind


def _refund(word: Word) -> int:
    return int(word.outcome is None or word.outcome is AttemptOutcome.NOT_SENT)


def _delay(seconds: float) -> float:
    return LONGEST_DELAY_SECONDS if math.isnan(seconds) else min(seconds, LONGEST_DELAY_SECONDS)
