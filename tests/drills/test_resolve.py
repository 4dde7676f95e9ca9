"""Operators resolve in bulk what is in doubt, by the command, again and again, while runs deliver beside them."""

import json
from concurrent.futures import Future

from rig.ground import wait_until
from rig.invoked import Invoked
from rig.runtimes import Runtime
from tests.cli.conftest import call
from tests.drills.ground import Ground

DOUBTFUL, SOUND = 16, 32
KINDS = """
select c.name, k.kind::text, count(*) from fencepost.closed k join fencepost.notification n on n.id = k.notification_id
  join fencepost.channel c on c.id = n.channel group by 1, 2 order by 1"""


def enqueue(ground: Ground, channel: str) -> None:
    """To receivers that act at every arrival (`plain`) or once (`dedupes`). Sound ones stand between: none is mute."""
    door = "plain" if channel == "way" else "dedupes"
    for number in range(DOUBTFUL + SOUND):
        behaviour = "slow" if number % 3 else "drop"
        to = f"{ground.provider.url}/{door}/{behaviour}/1/{channel}-{number}"
        payload = json.dumps({"title": "drill"})
        ground.connection.execute(
            "select fencepost.enqueue(%s, %s, %s::jsonb)", (channel, to, payload)
        )


def test_resolved_in_bulk_while_runs_deliver_each_is_sent_as_often_as_was_said(
    ground: Ground,
) -> None:
    """What is said to be delivered is never sent again; what is to be sent again is sent once more."""
    for channel in ("way", "again"):
        ground.channel(channel, on_uncertain="hold", slots=8)
        enqueue(ground, channel)
    runtimes = [ground.runtime() for _ in range(2)]
    ticks: dict[Runtime, Future[Invoked]] = {}

    def resolved() -> bool:
        for runtime in runtimes:
            if runtime not in ticks or ticks[runtime].done():
                assert runtime not in ticks or ticks[runtime].result().summary is not None
                ticks[runtime] = ground.invoke(runtime, "beside")
        for channel, word in (("way", "--delivered"), ("again", "--resend")):
            words = ("--channel", channel, word, "--why", "drill", "--yes")
            said = call(ground.url, "uncertain", "resolve", *words)
            assert said.code == 0, said
        return ground.number(
            "select count(*) from fencepost.closed where kind = 'delivered'"
        ) == 2 * (DOUBTFUL + SOUND)

    wait_until(resolved, 60, "everything resolved and delivered")
    assert all(tick.result(60).summary is not None for tick in ticks.values())
    assert ground.rows(KINDS) == [
        ("again", "delivered", DOUBTFUL + SOUND),
        ("way", "delivered", DOUBTFUL + SOUND),
    ]
    arrivals = [one.subject for one in ground.provider.arrivals()]
    assert len(arrivals) == 3 * DOUBTFUL + 2 * SOUND
    count = ground.provider.count()
    assert (count.plain_sent_again, count.duplicate_effects, count.changed_keys) == (0, 0, 0)
    ground.assert_conserved()
