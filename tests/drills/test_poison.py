"""A row that kills whoever sends it: found, sent alone, parked; its neighbours are delivered."""

from rig.ground import wait_until
from rig.runtimes import Runtime
from tests.drills.ground import Ground

INTERRUPTIONS_MAX = 3
POISON = """
select c.kind::text, c.reason from fencepost.closed c join fencepost.notification n on n.id = c.notification_id
 where n.dedupe_key = %(subject)s"""


def test_a_poison_row_is_parked_and_its_neighbours_are_delivered(ground: Ground) -> None:
    """The killer is the drill itself: as soon as the poison arrives at the provider, its runtime dies."""
    ground.channel(slots=6, interruptions_max=INTERRUPTIONS_MAX)
    (poison,) = ground.enqueue(1, "gate", times=1000)
    neighbours = ground.enqueue(12, "slow")
    runtime = ground.runtime()
    deaths = 0
    while deaths <= INTERRUPTIONS_MAX and not ground.closed():
        deaths += poisoned(ground, runtime, poison)
    assert deaths == INTERRUPTIONS_MAX
    assert ground.rows(POISON, {"subject": poison}) == [("dead", "poison")]
    assert ground.number("select count(*) from fencepost.closed where kind = 'delivered'") == 12
    assert ground.arrived(neighbours) == 12
    assert last_companions(ground, poison) == [], "the killer's last victim held nothing else"
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
    assert invoked.result(20).died
    return True


def arrivals(ground: Ground, subject: str) -> int:
    return sum(one.subject == subject for one in ground.provider.arrivals())


def last_companions(ground: Ground, poison: str) -> list[str]:
    """Who was taken over from the run that held the poison last."""
    return [
        subject
        for (subject,) in ground.rows(
            """select n.dedupe_key from fencepost.attempt a join fencepost.notification n on n.id = a.notification_id
                where a.taken_over and n.dedupe_key <> %(poison)s and a.run_id =
                  (select p.run_id from fencepost.attempts p join fencepost.notification k on k.id = p.notification_id
                    where k.dedupe_key = %(poison)s and p.taken_over order by p.fence desc limit 1)""",
            {"poison": poison},
        )
    ]
