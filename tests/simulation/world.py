"""One schedule: a virtual clock, the model of the database, a provider, up to four runs at a time, operators."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from fencepost.core.budget import Timing
from fencepost.core.channel import AttemptPolicy, Facility
from fencepost.core.notification import ChannelId, NotificationId, OnUncertain, RunId
from tests.simulation.faults import Fault, Plan
from tests.simulation.model import ChannelRow, Database, Guards
from tests.simulation.provider import Ledger

LEASES_SECONDS = (3.2, 5.0, 12.0)  # the shortest is renewed in every longer send
POLICY = AttemptPolicy(
    attempts_max=4,
    interruptions_max=3,
    backoff_base_seconds=0.5,
    backoff_cap_seconds=8.0,
    age_max_seconds=60.0,
    retry_after_max_seconds=10.0,
    unregistered_max=2,
)
KEYED, HOLDING, ASKING, COLLAPSING, TELLING = (ChannelId(number) for number in (1, 2, 3, 4, 5))
FACILITIES = {
    KEYED: Facility(deduplicates_for_seconds=40.0),
    HOLDING: Facility(),
    ASKING: Facility(can_be_asked=True),
    COLLAPSING: Facility(collapses=True),
    TELLING: Facility(evidence_within_seconds=20.0),
}
POLICIES = {
    KEYED: OnUncertain.RESEND,
    HOLDING: OnUncertain.HOLD,
    ASKING: OnUncertain.RECONCILE,
    COLLAPSING: OnUncertain.RESEND,
    TELLING: OnUncertain.RECONCILE,
}


class Broken(AssertionError):
    """A guarantee does not hold. The message names it and the seed."""


@dataclass(slots=True)
class Quirks:
    """Which rows and channels the database refuses to hear of, while the faults are on."""

    bad_detail: set[NotificationId] = field(default_factory=set)
    bad_word: set[NotificationId] = field(default_factory=set)
    hopeless: set[NotificationId] = field(default_factory=set)
    bad_claim: set[ChannelId] = field(default_factory=set)
    bad_rest: bool = False
    killers: set[NotificationId] = field(default_factory=set)


class World:
    """Time, chance and everything outside the runs."""

    def __init__(self, seed: int, *, guards: Guards | None = None) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.plan = Plan.of(self.rng)
        self.timing = Timing(
            send_timeout_seconds=2.0,
            settle_reserve_seconds=1.0,
            lease_seconds=self.rng.choice(LEASES_SECONDS),
            linger_seconds=0.01,
            lease_margin_seconds=1.0,
            exchange_timeout_seconds=1.0,
        )
        self.slowness = self.rng.choice((0.1, 0.4, 0.99))  # of good sends, in timeouts
        self.now = 0.0
        self.clock_offset = 0.0  # of the database's wall clock
        self.clock_jumped = False
        self.away_until = -math.inf
        self.database = Database(guards)
        self.ledger = Ledger()
        self.quirks = Quirks()
        self.dead_until: dict[tuple[ChannelId, str], float] = {}
        self.verdicts: Counter[str] = Counter()
        self.delivered_words: set[NotificationId] = set()  # the database took "delivered" for these
        self.forced: set[NotificationId] = set()  # an operator asked for a resend
        self.at_peace: dict[RunId, Callable[[], bool]] = {}  # awake, and never had trouble
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._channels()

    def _channels(self) -> None:
        for id, on_uncertain in POLICIES.items():
            self.database.channels[id] = ChannelRow(
                id=id,
                name=f"channel-{id}",
                on_uncertain=on_uncertain,
                slots=self.rng.choice((1, 2, 4)),
                rate=self.rng.choice((None, 4.0)),
                burst=2.0,
                policy=POLICY,
            )

    # --- time

    def at(self, when: float, what: Callable[[], object]) -> None:
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), what))

    def after(self, seconds: float, what: Callable[[], object]) -> None:
        self.at(self.now + seconds, what)

    def run_until(self, when: float) -> None:
        """Let everything happen that is due by then."""
        while self._queue and self._queue[0][0] <= when:
            instant, _, what = heapq.heappop(self._queue)
            self._turn(instant)
            what()
        self._turn(when)

    def _turn(self, instant: float) -> None:
        self.now = instant
        self.database.now = instant + self.clock_offset

    def jump_database_clock(self, seconds: float) -> None:
        self.clock_offset += seconds
        self.clock_jumped = True
        self._turn(self.now)

    def new_run(self) -> RunId:
        return RunId(UUID(int=self.rng.getrandbits(128)))

    # --- proof

    def require(self, holds: bool, guarantee: str, **details: object) -> None:
        if not holds:
            told = ", ".join(f"{name}={value}" for name, value in details.items())
            raise Broken(
                f"{guarantee} at {self.now:.3f} s ({told}); again with: make sim SEED={self.seed}"
            )

    def fired(self, fault: Fault) -> None:
        self.plan.fired[fault] += 1
