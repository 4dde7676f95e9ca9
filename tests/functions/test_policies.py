"""What a channel's words come to over several ticks: the function, a real database, a real receiver."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
Deliver = Callable[..., dict[str, Any]]
KINDS = "select count(*) from fencepost.closed where kind = '{}' and reason is not distinct from {}"
TICKS_MAX = 60
SETTINGS = {"allow_http": True, "allow_private_networks": True}


def enqueue(ground: Ground, behaviour: str, *, count: int = 1, times: int = 1) -> None:
    for number in range(count):
        recipient = f"{ground.provider.url}/dedupes/{behaviour}/{times}/{behaviour}-{number}"
        ground.connection.execute(
            "select fencepost.enqueue('way', %s, %s::jsonb)", (recipient, json.dumps({}))
        )


def closed(ground: Ground, kind: str, reason: str = "null") -> int:
    return ground.number(KINDS.format(kind, reason))


def hurried(deliver: Deliver, tick: dict[str, Any]) -> dict[str, Any]:
    """A run with the time for one claim, hardly for more; where not even that was made, with a little more."""
    for seconds in (12.5, 13.5, 16.0):
        summary = deliver(tick, Context(seconds=seconds))
        if summary["claimed"]:
            break
    return summary


@pytest.mark.parametrize("behaviour", ["error", "drop"])
def test_a_receiver_that_never_takes_it_is_tried_as_often_as_the_policy_says(
    ground: Ground, deliver: Deliver, tick: dict[str, Any], behaviour: str
) -> None:
    """The count lies with the claim: no run can forget it. What may have arrived is not called dead."""
    policy = {"attempts_max": 5, "backoff_base_seconds": 0.001, "backoff_cap_seconds": 0.002}
    ground.channel(policy=policy)
    enqueue(ground, behaviour, times=99)
    for _ in range(TICKS_MAX):
        deliver(tick, Context())
        if ground.number("select count(*) from fencepost.queue") == 0:
            break
    assert ground.provider.count().arrivals == 5
    kind = "dead" if behaviour == "error" else "uncertain"
    assert closed(ground, kind, "'attempts_exhausted'") == 1


def test_a_channel_opened_again_sends_only_what_is_still_wanted(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.connection.execute("select fencepost.channel_pause('way', 'the receiver moves')")
    enqueue(ground, "ok", count=7)
    ground.connection.execute(
        """update fencepost.notification set due_at = now() - interval '90 days', expires_at = now() - interval '1 day'
            where id in (select id from fencepost.notification order by id limit 5)"""
    )
    assert deliver(tick, Context())["ended"] == "idle"
    ground.connection.execute("select fencepost.channel_resume('way')")
    deliver(tick, Context())
    assert ground.provider.count().arrivals == 2
    assert (closed(ground, "delivered"), closed(ground, "expired", "'expired'")) == (2, 5)


def test_one_throttled_row_keeps_the_whole_channel_waiting(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    """In this run and in the next: the pause is the channel's, and the rows it held up have lost no attempt."""
    ground.channel(
        slots=1,
        settings={**SETTINGS, "throttle_whole_channel": True},
        policy={"retry_after_max_seconds": 3600},
    )
    enqueue(ground, "throttle")
    enqueue(ground, "ok", count=20)
    ground.connection.execute(
        "update fencepost.queue set due_at = due_at - interval '1 s' where notification_id = 1"
    )
    first = hurried(deliver, tick)
    assert (first["claimed"], first["pauses"]) == (1, 1)
    assert ground.number("select sum(attempts) from fencepost.queue") == 0
    ground.connection.execute(
        "update fencepost.channel set paused_until = now() + interval '30 s' where paused_until > '-infinity'"
    )
    assert deliver(tick, Context())["ended"] == "idle"
    assert ground.provider.count().arrivals == 1


@pytest.mark.slow
def test_a_late_row_of_another_channel_does_not_wait_for_a_bulk_load(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel(slots=2)
    enqueue(ground, "gate", count=40)
    other = {
        "name": "other",
        "sender": "webhook",
        "settings": SETTINGS,
        "secret_reference": "env:WEBHOOK_SECRET",
        "on_uncertain": "hold",
    }
    ground.connection.execute("select fencepost.channel_apply(%s::jsonb)", (json.dumps([other]),))
    recipient = f"{ground.provider.url}/dedupes/ok/1/late"
    ground.connection.execute("select fencepost.enqueue('other', %s, '{}'::jsonb)", (recipient,))
    hurried(deliver, tick)
    assert closed(ground, "delivered") == 1
