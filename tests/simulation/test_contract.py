"""The model is held to the contract of the store: what the simulation proves about it holds for the real one."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from fencepost.core.notification import AttemptOutcome, NotificationId, OnUncertain
from fencepost.ports import Store
from tests.simulation.model import BEST_FIRST, NOBODY, Database
from tests.simulation.store import FakeStore, standard_channels
from tests.store.bench import Bench, Said, Standing, Written
from tests.store.contract import (
    ClaimContract,
    DoubtContract,
    EvidenceContract,
    GateContract,
    LastContract,
    OperatorContract,
    SeqContract,
    SettleContract,
    StartContract,
)

T = TypeVar("T")


class ModelBench:
    """A bench around the model."""

    def __init__(self) -> None:
        self.database = Database()
        standard_channels(self.database)
        self.store: Store = FakeStore(self.database)

    def wait(self, answer: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(answer)

    def advance(self, seconds: float) -> None:
        self.database.now += seconds

    def enqueue(
        self,
        count: int = 1,
        *,
        channel: str = "web",
        priority: int = 1,
        due_in: float = 0.0,
        expires_in: float | None = None,
        on_uncertain: OnUncertain | None = None,
    ) -> list[NotificationId]:
        id = next(row.id for row in self.database.channels.values() if row.name == channel)
        return [
            self.database.enqueue(
                id,
                priority=priority,
                due_in=due_in,
                expires_in=expires_in,
                on_uncertain=on_uncertain,
            )
            for _ in range(count)
        ]

    def evidence(
        self,
        id: NotificationId,
        outcome: AttemptOutcome,
        *,
        fence: int | None = None,
        source: str = "callback",
    ) -> None:
        self.database.note(source, id, outcome, fence=fence)

    def cancel(self, id: NotificationId) -> str:
        return self.database.cancel(id)

    def redrive(self, id: NotificationId, *, resend: bool = False) -> str:
        return self.database.redrive(id, resend=resend)

    def resolve(self, id: NotificationId, outcome: str) -> str:
        return self.database.resolve(id, outcome)

    def quarantine(self) -> int:
        return self.database.quarantine()

    def repair(self, channel: str) -> None:
        id = next(row.id for row in self.database.channels.values() if row.name == channel)
        self.database.repair(id)

    def standing(self, id: NotificationId) -> Standing:
        return standing(self.database, id)

    def conserved(self) -> bool:
        return self.database.conserved()


def standing(database: Database, id: NotificationId) -> Standing:
    """All that the model knows of one notification."""
    row, closed = database.queue.get(id), database.closed.get(id)
    ledger = [
        Written(fence, attempt.outcome, attempt.taken_over)
        for fence, attempt in database.attempts[id].items()
    ]
    if closed is not None and closed.outcome is not None:
        ledger.append(Written(closed.fence, closed.outcome))
    known = {Said(one.fence, one.outcome) for one in database.evidence[id]}
    return Standing(
        kind=closed.kind if closed else None,
        reason=closed.reason if closed else None,
        fence=row.fence if row else closed.fence if closed else 0,
        leased=row is not None and row.run != NOBODY,
        attempts=row.attempts if row else closed.attempts if closed else 0,
        interruptions=row.interruptions if row else 0,
        doubt=row is not None and row.doubt,
        ledger=tuple(sorted(ledger)),
        evidence=tuple(
            sorted(known, key=lambda said: (said.fence, BEST_FIRST.index(said.outcome)))
        ),
    )


@pytest.fixture
def bench() -> Bench:
    return ModelBench()


class TestStart(StartContract): ...


class TestClaim(ClaimContract): ...


class TestSeq(SeqContract): ...


class TestGate(GateContract): ...


class TestLast(LastContract): ...


class TestSettle(SettleContract): ...


class TestDoubt(DoubtContract): ...


class TestEvidence(EvidenceContract): ...


class TestOperator(OperatorContract): ...
