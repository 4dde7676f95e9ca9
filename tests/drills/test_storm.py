"""Kills and freezes at seeded moments, wherever the runs happen to stand: what is promised holds all the same."""

import random
import threading
from collections.abc import Callable

import pytest

from rig.ground import wait_until
from rig.runtimes import Runtime
from tests.drills.ground import ANSWER_SECONDS, Ground, event

NOTIFICATIONS = 240
ACCIDENTS = 8
KILLS_MIN = 3  # the first accidents are kills: a storm without a death proves nothing
HOLDING = """
select distinct r.invocation from fencepost.queue q join fencepost.run r on r.id = q.run_id
 where q.lease_until > clock_timestamp()"""
DELIVERED = """
select n.dedupe_key from fencepost.closed c join fencepost.notification n on n.id = c.notification_id
 where c.kind = 'delivered'"""


class Schedule:
    """One runtime's ticks, one after another, until told to stop; a killed run is followed by the next tick."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.tick = f"storm of {runtime.name}"
        self.deaths = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(ANSWER_SECONDS)
        assert not self._thread.is_alive()

    def _tick(self) -> None:
        while not self._stop.is_set():
            self.deaths += self.runtime.invoke(event(self.tick)).died


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("on_uncertain", "door"), [("resend", "dedupes"), ("hold", "plain")])
def test_kills_and_freezes_at_any_moment(
    ground: Ground, on_uncertain: str, door: str, seed: int
) -> None:
    dice = random.Random(seed)
    ground.channel(slots=8, on_uncertain=on_uncertain, interruptions_max=100, attempts_max=100)
    for behaviour, share in (("ok", 0.4), ("slow", 0.4), ("error", 0.1), ("drop", 0.1)):
        ground.enqueue(round(NOTIFICATIONS * share), behaviour, door=door)
    schedules = [Schedule(ground.runtime()) for _ in range(3)]
    try:
        storm(ground, dice, schedules)
        wait_until(ground.closed, 40, f"everything closed (seed {seed})")
    finally:
        for schedule in schedules:
            schedule.stop()
    assert_kept(ground, on_uncertain, seed)
    assert sum(schedule.deaths for schedule in schedules) >= 2, (
        f"seed {seed}: nobody died in mid-run"
    )


def storm(ground: Ground, dice: random.Random, schedules: list[Schedule]) -> None:
    """Each accident at a moment counted in arrivals. A frozen one goes on at the next accident."""
    thaw: Callable[[], None] = nothing
    for number in range(ACCIDENTS):
        moment = round(NOTIFICATIONS * 0.8 * (number + dice.random()) / ACCIDENTS)
        wait_for_arrivals(ground, moment)
        thaw()
        thaw = nothing
        runtime = one_at_work(ground, dice, schedules)
        if runtime is None:
            break
        if number < KILLS_MIN or dice.random() < 0.6:
            runtime.kill()
        else:
            runtime.freeze()
            thaw = runtime.thaw
    wait_until(
        lambda: ground.number("select count(*) from fencepost.attempt where taken_over") > 0,
        20,
        "a takeover",
    )
    thaw()


def one_at_work(ground: Ground, dice: random.Random, schedules: list[Schedule]) -> Runtime | None:
    """A runtime whose run holds rows: on a busy machine most of the others are still starting. None: all is over."""
    found: list[Runtime] = []

    def at_work() -> bool:
        holding = {tick for (tick,) in ground.rows(HOLDING)}
        found[:] = [one.runtime for one in schedules if one.tick in holding and one.runtime.pid()]
        return bool(found) or ground.closed()

    wait_until(at_work, 30, "a runtime at work")
    return dice.choice(found) if found else None


def wait_for_arrivals(ground: Ground, moment: int) -> None:
    wait_until(lambda: ground.provider.count().arrivals >= moment, 30, f"{moment} arrivals")


def nothing() -> None: ...


def assert_kept(ground: Ground, on_uncertain: str, seed: int) -> None:
    count = ground.provider.count()
    kinds = dict(ground.rows("select kind::text, count(*) from fencepost.closed group by kind"))
    assert sum(kinds.values()) == NOTIFICATIONS, f"seed {seed}: {kinds}"
    assert set(kinds) <= ({"delivered"} if on_uncertain == "resend" else {"delivered", "uncertain"})
    assert (count.duplicate_effects, count.plain_sent_again) == (0, 0), f"seed {seed}: {count}"
    assert (count.changed_keys, count.changed_bodies) == (0, 0), f"seed {seed}: {count}"
    acted = {one.subject for one in ground.provider.arrivals() if one.acted}
    delivered = {subject for (subject,) in ground.rows(DELIVERED)}
    assert delivered <= acted, f"seed {seed}: called delivered without an effect"
    ground.assert_conserved()
