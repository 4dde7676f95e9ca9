"""A row that kills whoever sends it: found, sent alone, parked; its neighbours are delivered."""

from rig.ground import wait_until
from rig.runtimes import Runtime
from tests.drills.ground import ANSWER_SECONDS, Ground

INTERRUPTIONS_MAX = 3
NEIGHBOURS = 240
SHORT_LEASE = {  # neighbours outlast it; and who must be alone has time to wait for the others' sends
    "FENCEPOST_SEND_TIMEOUT_SECONDS": "2",
    "FENCEPOST_LEASE_SECONDS": "5",
}
POISON = """
select c.kind::text, c.reason from fencepost.closed c join fencepost.notification n on n.id = c.notification_id
 where n.dedupe_key = %(subject)s"""
DELIVERED = "select count(*) from fencepost.closed where kind = 'delivered'"
DUE = "select count(*) from fencepost.queue where run_id = fencepost.nobody() and due_at <= now()"
VICTIMS = """
select (select count(*) from fencepost.attempt o where o.taken_over and o.run_id = a.run_id)
  from fencepost.attempt a join fencepost.notification n on n.id = a.notification_id
 where a.taken_over and n.dedupe_key = %(poison)s order by a.fence"""


def test_a_poison_row_is_parked_and_its_neighbours_are_delivered(ground: Ground) -> None:
    """The killer is the drill itself: as soon as the poison arrives at the provider, its runtime dies."""
    ground.channel(slots=8, interruptions_max=INTERRUPTIONS_MAX)
    (poison,) = ground.enqueue(1, "gate", times=1000)
    neighbours = len(ground.enqueue(NEIGHBOURS, "slow"))
    runtime = ground.runtime(SHORT_LEASE)
    due_at_death: list[int] = []
    while len(due_at_death) <= INTERRUPTIONS_MAX and not ground.closed():
        if poisoned(ground, runtime, poison):
            due_at_death.append(ground.number(DUE))
            if len(due_at_death) < INTERRUPTIONS_MAX:  # however fast the others are, some are left
                neighbours += len(ground.enqueue(NEIGHBOURS - due_at_death[-1], "slow"))
    assert len(due_at_death) == INTERRUPTIONS_MAX
    assert all(due_at_death), f"nobody was there to be its neighbour: {due_at_death}"
    assert ground.rows(POISON, {"subject": poison}) == [("dead", "poison")]
    assert ground.number(DELIVERED) == neighbours
    first, *_, last = victims(ground, poison)
    assert first > 1, "it took neighbours with it at first"
    assert last == 1, "and died alone at last"
    assert ground.provider.count().duplicate_effects == 0
    ground.assert_conserved()


def poisoned(ground: Ground, runtime: Runtime, poison: str) -> bool:
    """One tick; whether the poison was sent, and killed its runtime."""
    before = arrivals(ground, poison)
    invoked = ground.invoke(runtime)
    wait_until(lambda: invoked.done() or arrivals(ground, poison) > before, 20, "poison or the end")
    if arrivals(ground, poison) == before:
        return False
    runtime.kill()
    assert invoked.result(ANSWER_SECONDS).died
    return True


def arrivals(ground: Ground, subject: str) -> int:
    return sum(one.subject == subject for one in ground.provider.arrivals())


def victims(ground: Ground, poison: str) -> list[int]:
    """How many rows were taken over from each run that died of the poison, in order."""
    return [number for (number,) in ground.rows(VICTIMS, {"poison": poison})]
