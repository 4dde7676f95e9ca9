"""A run that dies after Twilio has read its messages: the next one looks into the list of what Twilio has."""

import json
import time
from collections.abc import Iterator

import pytest

from rig.ground import wait_until
from tests.drills.ground import ANSWER_SECONDS, POLICY, Ground
from tests.senders.threaded import serving
from tests.senders.twilio_server import ACCOUNT, SECRET, TwilioServer

COUNT = 4
DROPPED = 1


@pytest.fixture
def twilio(ground: Ground) -> Iterator[TwilioServer]:
    """It forgets the first message, stores the others, and answers none of them."""
    server = TwilioServer(now=time.time())
    server.keeps_silent, server.drops = True, DROPPED
    with serving(server) as port:
        channel = {
            "name": "way",
            "sender": "twilio",
            "settings": {
                "account_sid": ACCOUNT,
                "from": "+14155550123",
                "endpoint": f"http://127.0.0.1:{port}",
                "settled_after_seconds": 0,
            },
            "secret_reference": "env:TWILIO_PAIR",
            "on_uncertain": "reconcile",
            "slots": COUNT,
            "policy": POLICY,
        }
        ground.connection.execute("select fencepost.bind('drill')")
        apply = "select * from fencepost.channel_apply(%s::jsonb)"
        ground.connection.execute(apply, (json.dumps([channel]),))
        yield server


def test_killed_after_it_was_read_what_is_stored_is_found_and_the_rest_is_sent(
    ground: Ground, twilio: TwilioServer
) -> None:
    for number in range(COUNT):
        payload = json.dumps({"body": f"number {number}"})
        to = f"+1415555010{number}"
        ground.connection.execute("select fencepost.enqueue('way', %s, %s::jsonb)", (to, payload))
    first = ground.runtime({"TWILIO_PAIR": SECRET})
    invoked = ground.invoke(first, "killed")
    wait_until(lambda: len(twilio.forms) == COUNT, 15, "Twilio to have read all")
    first.kill()
    assert invoked.result(ANSWER_SECONDS).died
    assert len(twilio.messages) == COUNT - DROPPED
    twilio.keeps_silent = False
    ground.run_until(ground.closed, ground.runtime({"TWILIO_PAIR": SECRET}), seconds=60)
    bodies = sorted(one["body"] for one in twilio.messages)
    assert bodies == [f"number {number}" for number in range(COUNT)], "each once"
    assert len(twilio.forms) == COUNT + DROPPED
    assert twilio.asked, "it was asked"
    assert ground.rows("select kind::text, count(*) from fencepost.closed group by kind") == [
        ("delivered", COUNT)
    ]
    taken_over = "select count(*) from fencepost.attempt where taken_over and outcome = 'uncertain'"
    assert ground.number(taken_over) == COUNT
    assert SECRET.partition(":")[2] not in first.log()
    ground.assert_conserved()
