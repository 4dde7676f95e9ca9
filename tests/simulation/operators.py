"""Everybody who is not a run: operators, callbacks, clocks, outages. They meddle at random, and never lie."""

from collections.abc import Callable

from fencepost.core.notification import AttemptOutcome, NotificationId
from tests.simulation.faults import Fault
from tests.simulation.invocation import Invocation
from tests.simulation.model import NOBODY
from tests.simulation.world import ASKING, COLLAPSING, HOLDING, KEYED, TELLING, World

CHANNELS = (KEYED, HOLDING, ASKING, COLLAPSING, TELLING)


class Meddling:
    """What happens around the runs while the faults are on."""

    def __init__(self, world: World, invocations: list[Invocation]) -> None:
        self.world = world
        self.invocations = invocations
        self.deeds: dict[Fault, Callable[[], None]] = {
            Fault.CRASH: self._crash,
            Fault.STALL: self._stall,
            Fault.STALL_PAST_END: self._stall_past_end,
            Fault.AWAY: self._away,
            Fault.CLOCK_FORTH: lambda: world.jump_database_clock(world.rng.uniform(1, 30)),
            Fault.CLOCK_BACK: lambda: world.jump_database_clock(-world.rng.uniform(1, 30)),
            Fault.BUSY_CHANNEL: self._busy,
            Fault.CANCEL: self._cancel,
            Fault.REDRIVE: lambda: self._on_some(self._redrive),
            Fault.EVIDENCE: lambda: self._on_some(self._evidence),
            Fault.REPAIR: lambda: world.database.repair(world.rng.choice(CHANNELS)),
        }

    def once(self) -> None:
        """Throw the dice for each kind."""
        for fault, deed in self.deeds.items():
            if self.world.plan.strikes(fault):
                deed()

    def _some_run(self) -> Invocation | None:
        living = [one for one in self.invocations if one.alive and not one.finished]
        return self.world.rng.choice(living) if living else None

    def _crash(self) -> None:
        if run := self._some_run():
            run.crash()

    def _stall(self) -> None:
        if run := self._some_run():
            run.freeze(self.world.rng.uniform(0.5, 7.0))

    def _stall_past_end(self) -> None:
        if run := self._some_run():
            run.freeze(run.hard_end - self.world.now + self.world.rng.uniform(0.1, 5.0))

    def _away(self) -> None:
        self.world.away_until = self.world.now + self.world.rng.uniform(0.5, 6.0)

    def _busy(self) -> None:
        row = self.world.database.channels[self.world.rng.choice(CHANNELS)]
        row.busy = True

        def free() -> None:
            row.busy = False

        self.world.after(self.world.rng.uniform(0.01, 0.3), free)

    def _on_some(self, deed: Callable[[NotificationId], object]) -> None:
        ids = list(self.world.database.notifications)
        if ids:
            deed(self.world.rng.choice(ids))

    def _cancel(self) -> None:
        """Rather what is leased: that is a takeover."""
        database = self.world.database
        leased = [row.id for row in database.queue.values() if row.run != NOBODY]
        if leased and self.world.rng.random() < 0.7:
            database.cancel(self.world.rng.choice(leased))
        else:
            self._on_some(database.cancel)

    def _redrive(self, id: NotificationId) -> None:
        resend = self.world.rng.random() < 0.5
        if self.world.database.redrive(id, resend=resend) == "redriven" and resend:
            self.world.forced.add(id)

    def _evidence(self, id: NotificationId) -> None:
        """A callback about one send: only what is certain by now."""
        sendings = self.world.ledger.of(id)
        if not sendings:
            return
        sending = self.world.rng.choice(sendings)
        if sending.accepted_at is None:
            self.world.database.note(
                "callback", id, AttemptOutcome.FAILED, fence=sending.held.fence
            )
        elif sending.accepted_at <= self.world.now:
            fence = self.world.rng.choice((None, sending.held.fence))
            self.world.database.note("callback", id, AttemptOutcome.DELIVERED, fence=fence)
            self.world.delivered_words.add(id)
