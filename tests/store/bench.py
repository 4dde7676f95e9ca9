"""Where a store is held to its contract: a store, a clock to turn, and the words of everybody who is not a run.

To hold another store to it, write a `Bench` around that store and a module like this:

    class MyBench: ...                                  # see the protocol below; `store` is yours

    @pytest.fixture
    def bench() -> Iterator[Bench]:
        yield MyBench()

    class TestClaim(ClaimContract): ...                 # and the other classes of tests/store/contract.py

A bench begins with an empty database, bound to installation `test`, minimum code version 1, and three open channels:
`web` (no rate, policy hold), `post` (the same) and `slow` (two a second, burst 4, policy resend).
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from fencepost.core.channel import Channel
from fencepost.core.exchange import (
    NO_FACTS,
    Exchange,
    Exchanged,
    Facts,
    GateWord,
    RunStart,
    RunStarted,
    Verdict,
    Want,
    Word,
)
from fencepost.core.notification import (
    AttemptOutcome,
    Claimed,
    Held,
    Kind,
    NotificationId,
    OnUncertain,
    RunId,
)
from fencepost.ports import Store

T = TypeVar("T")
LEASE_SECONDS = 20.0


class Written(NamedTuple):
    """One attempt as the ledger has it."""

    fence: int
    outcome: AttemptOutcome
    taken_over: bool = False


class Said(NamedTuple):
    """One piece of evidence; fence 0: not known."""

    fence: int
    outcome: AttemptOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that is known of one notification. `kind` None: open. `attempts` of the row, wherever it is."""

    kind: Kind | None
    reason: str | None
    fence: int
    leased: bool
    attempts: int
    interruptions: int
    doubt: bool
    ledger: tuple[Written, ...]  # by fence, the closing attempt included
    evidence: tuple[Said, ...]  # by fence, then outcome in the order of AttemptOutcome


class Bench(Protocol):
    store: Store

    def wait(self, answer: Coroutine[Any, Any, T]) -> T:
        """Run one call of the store to its end."""
        ...

    def advance(self, seconds: float) -> None:
        """Turn the store's clock, back too."""
        ...

    def enqueue(
        self,
        count: int = 1,
        *,
        channel: str = "web",
        priority: int = 1,
        due_in: float = 0.0,
        expires_in: float | None = None,
        on_uncertain: OnUncertain | None = None,
    ) -> list[NotificationId]: ...

    def evidence(
        self,
        id: NotificationId,
        outcome: AttemptOutcome,
        *,
        fence: int | None = None,
        source: str = "callback",
    ) -> None:
        """A fact from outside any run; fence None: not known."""
        ...

    def cancel(self, id: NotificationId) -> str:
        """The verdict: cancelled, cancelled_leased, delivered; else how it stands."""
        ...

    def redrive(self, id: NotificationId, *, resend: bool = False) -> str:
        """The verdict: redriven, needs_resend; else how it stands."""
        ...

    def resolve(self, id: NotificationId, outcome: str) -> str:
        """An operator's word: delivered, not_delivered or dead. The verdict is how it stands now."""
        ...

    def quarantine(self) -> int:
        """After a restore. How many were open."""
        ...

    def repair(self, channel: str) -> None:
        """An operator's change: the pause is lifted, the revision raised."""
        ...

    def standing(self, id: NotificationId) -> Standing: ...

    def conserved(self) -> bool:
        """Every notification is in exactly one of open and closed."""
        ...


class Worker:
    """One run on the bench, as its core would speak: a new seq for each exchange unless told otherwise."""

    def __init__(self, bench: Bench, *channels: str, start: bool = True) -> None:
        self.bench = bench
        self.run = RunId(uuid4())
        self.seq = 0
        self.channels: dict[str, Channel] = {}
        if start:
            self.channels = {channel.name: channel for channel in self.started(*channels).channels}

    def started(self, *channels: str, installation: str = "test", version: int = 1) -> RunStarted:
        start = RunStart(
            run=self.run,
            installation=installation,
            version=version,
            invocation="bench",
            deadline_in_seconds=60.0,
            channels=channels,
        )
        return self.bench.wait(self.bench.store.start_run(start))

    def say(
        self,
        *settle: Word,
        renew: tuple[Held, ...] = (),
        gates: tuple[GateWord, ...] = (),
        claim: tuple[Want, ...] = (),
        last: bool = False,
        seq: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> Exchanged:
        self.seq = self.seq + 1 if seq is None else seq
        said = Exchange(
            run=self.run,
            seq=self.seq,
            lease_seconds=lease_seconds,
            settle=settle,
            renew=renew,
            gates=gates,
            claim=claim,
            last=last,
        )
        return self.bench.wait(self.bench.store.exchange(said))

    def want(self, limit: int = 10, *, channel: str = "web", hint: bool = True) -> tuple[Want, ...]:
        return (Want(channel=self.channels[channel].id, limit=limit, hint=hint),)

    def claim(
        self, limit: int = 10, *, channel: str = "web", lease_seconds: float = LEASE_SECONDS
    ) -> tuple[Claimed, ...]:
        return self.say(
            claim=self.want(limit, channel=channel), lease_seconds=lease_seconds
        ).claimed

    def claim_one(self, *, channel: str = "web") -> Claimed:
        (claimed,) = self.claim(channel=channel)
        return claimed

    def settle(self, *words: Word) -> list[Verdict]:
        return list(self.say(*words).verdicts)


def delivered(held: Held, facts: Facts = NO_FACTS) -> Word:
    return word(held, AttemptOutcome.DELIVERED, Kind.DELIVERED, facts=facts)


def retry(held: Held, delay_seconds: float = 0.0, facts: Facts = NO_FACTS) -> Word:
    return word(held, AttemptOutcome.FAILED, delay_seconds=delay_seconds, facts=facts)


def not_sent(held: Held, delay_seconds: float = 0.0) -> Word:
    return word(held, AttemptOutcome.NOT_SENT, delay_seconds=delay_seconds)


def uncertain(held: Held, delay_seconds: float = 0.0, facts: Facts = NO_FACTS) -> Word:
    return word(held, AttemptOutcome.UNCERTAIN, delay_seconds=delay_seconds, facts=facts)


def dead(held: Held) -> Word:
    return word(held, AttemptOutcome.REJECTED, Kind.DEAD, reason="rejected")


def hold(held: Held) -> Word:
    return word(held, AttemptOutcome.HELD, Kind.UNCERTAIN, reason="hold")


def release(held: Held, delay_seconds: float = 0.0) -> Word:
    return word(held, None, delay_seconds=delay_seconds)


def word(
    held: Held,
    outcome: AttemptOutcome | None,
    kind: Kind | None = None,
    *,
    delay_seconds: float = 0.0,
    reason: str | None = None,
    facts: Facts = NO_FACTS,
) -> Word:
    return Word(
        id=held.id,
        fence=held.fence,
        outcome=outcome,
        kind=kind,
        delay_seconds=delay_seconds,
        reason=reason,
        facts=facts,
    )
