"""One seed, one schedule: a time of faults, then calm, then the proof that everything came to its end."""

from collections import Counter

from fencepost.core.notification import Kind
from tests.simulation.faults import Fault
from tests.simulation.invocation import Invocation
from tests.simulation.model import Guards
from tests.simulation.network import Network
from tests.simulation.operators import CHANNELS, Meddling
from tests.simulation.world import FACILITIES, HOLDING, KEYED, TELLING, World

RUNS_AT_ONCE = 4
FAULTY_SECONDS = 30.0
CALM_TICKS_MAX = 60
CALM_RUN_SECONDS = 8.0


class Schedule:
    """Everything that happens under one seed. Raises `Broken`."""

    def __init__(self, seed: int, *, guards: Guards | None = None) -> None:
        self.world = World(seed, guards=guards)
        self.network = Network(self.world)
        self.invocations: list[Invocation] = []
        self.meddling = Meddling(self.world, self.invocations)

    def run(self) -> Counter[Fault]:
        """Play it. The faults that really fired."""
        self._enqueue(self.world.rng.randint(2, 10))
        self._draw_quirks()
        while self.world.now < FAULTY_SECONDS:
            self._perhaps_tick()
            self.meddling.once()
            if self.world.rng.random() < 0.1:
                self._enqueue(1)
            self.world.run_until(self.world.now + self.world.rng.uniform(0.2, 2.0))
        self._calm()
        self._look_at_the_end()
        return self.world.plan.fired

    # --- the time of faults

    def _enqueue(self, count: int) -> None:
        rng = self.world.rng
        for _ in range(count):
            id = self.world.database.enqueue(
                rng.choice(CHANNELS),
                priority=rng.randint(0, 2),
                due_in=rng.choice((0.0, 0.0, rng.uniform(0, 10))),
                expires_in=rng.choice((None, None, None, rng.uniform(5, 40))),
            )
            if self.world.plan.strikes(Fault.INTERRUPTED):
                row = self.world.database.queue[id]  # evidence has cleared its doubt since
                row.fence, row.attempts, row.interruptions = 2, 2, 2

    def _draw_quirks(self) -> None:
        rng, plan, quirks = self.world.rng, self.world.plan, self.world.quirks
        ids = list(self.world.database.notifications)
        for fault, chosen in (
            (Fault.BAD_DETAIL, quirks.bad_detail),
            (Fault.BAD_WORD, quirks.bad_word),
            (Fault.HOPELESS_WORD, quirks.hopeless),
            (Fault.KILLER, quirks.killers),
        ):
            if plan.has(fault):
                chosen.update(rng.sample(ids, k=1))
        if plan.has(Fault.BAD_CLAIM):
            quirks.bad_claim.add(rng.choice(CHANNELS))
        # a database that refuses every word of a row and every renewal too leaves a run no way to let go of it
        quirks.bad_rest = plan.has(Fault.BAD_REST) and not quirks.hopeless

    def _perhaps_tick(self) -> None:
        living = sum(one.alive and not one.finished for one in self.invocations)
        if living < RUNS_AT_ONCE and self.world.rng.random() < 0.6:
            self._tick(self.world.rng.choice((-1.0, 0.5, 3.0, 6.0, 9.0, 15.0)))

    def _tick(self, lasts: float) -> None:
        self.invocations.append(Invocation(self.world, self.network, lasts=lasts))

    # --- calm

    def _calm(self) -> None:
        """Faults stop; what they left behind (frozen runs, ghosts, leases) still comes to light."""
        self.world.plan.on = False
        self.world.away_until = self.world.now
        self.world.run_until(self.world.now + 30.0)
        for _ in range(CALM_TICKS_MAX):
            if not self.world.database.queue:
                return
            self._skip_to_work()
            self._tick(CALM_RUN_SECONDS)
            self.world.run_until(self.world.now + CALM_RUN_SECONDS)

    def _skip_to_work(self) -> None:
        database = self.world.database
        due = min(
            max(row.due_at, row.lease_until, database.channels[row.channel].paused_until)
            for row in database.queue.values()
        )
        self.world.run_until(max(self.world.now, due - self.world.clock_offset) + 0.001)

    # --- the end

    def _look_at_the_end(self) -> None:
        world, database = self.world, self.world.database
        world.require(
            not database.queue,
            "no starvation: once faults stop, everything is closed",
            left=list(database.queue.values()),
        )
        world.require(database.conserved(), "G3: open and closed are all that was enqueued")
        for id in world.delivered_words:
            kind = database.closed[id].kind
            world.require(kind is Kind.DELIVERED, "G8: knowledge is kept", id=id, kind=kind)
        for id, body in database.notifications.items():
            effects = world.ledger.effects(id, FACILITIES[body.channel])
            if id in world.forced or body.channel not in (KEYED, HOLDING, TELLING):
                continue
            jumped = world.clock_jumped and body.channel == KEYED
            world.require(effects <= 1 or jumped, "no duplicate effect", id=id, effects=effects)
