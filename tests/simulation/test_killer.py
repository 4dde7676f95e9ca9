"""One row kills every run that sends it: it is found and parked, and none of its neighbours with it."""

import pytest

from fencepost.core.notification import Kind, NotificationId
from tests.simulation.invocation import Invocation
from tests.simulation.network import Network
from tests.simulation.world import COLLAPSING, World

TICKS = 14
NEIGHBOURS = 7


@pytest.mark.parametrize("seed", range(25))
def test_the_killer_is_parked_and_its_neighbours_are_delivered(seed: int) -> None:
    world = World(seed)
    world.plan.chances.clear()
    world.database.channels[COLLAPSING].slots = 4
    world.database.channels[COLLAPSING].rate = None
    ids = [world.database.enqueue(COLLAPSING) for _ in range(NEIGHBOURS + 1)]
    killer = NotificationId(world.rng.choice(ids))
    world.quirks.killers.add(killer)
    network = Network(world)
    for _ in range(TICKS):
        Invocation(world, network, lasts=9.0)
        world.run_until(world.now + 13.0)
    closed = {id: (one.kind, one.reason) for id, one in world.database.closed.items()}
    assert closed.pop(killer) == (Kind.DEAD, "poison"), f"seed {seed}"
    assert len(world.ledger.of(killer)) == 3, f"seed {seed}"
    assert set(closed.values()) == {(Kind.DELIVERED, None)}, f"seed {seed}"
    assert len(closed) == NEIGHBOURS
