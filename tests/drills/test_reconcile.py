"""A run that dies after Slack has stored its message: the next one asks, and finds it by its metadata."""

import json
import time
from collections.abc import Iterator

import pytest

from rig.ground import wait_until
from tests.drills.ground import ANSWER_SECONDS, POLICY, Ground
from tests.senders.slack_server import TOKEN, SlackServer
from tests.senders.threaded import serving

ROOM = "C0123ABC"


@pytest.fixture
def slack(ground: Ground) -> Iterator[SlackServer]:
    """Its first answers never come, and its history is the way to know."""
    server = SlackServer(now=time.time(), cuts=0)
    with serving(server) as port:
        channel = {
            "name": "way",
            "sender": "slack",
            "settings": {"endpoint": f"http://127.0.0.1:{port}/api"},
            "secret_reference": "env:SLACK_TOKEN",
            "on_uncertain": "reconcile",
            "slots": 4,
            "policy": POLICY,
        }
        ground.connection.execute("select fencepost.bind('drill')")
        ground.connection.execute(
            "select * from fencepost.channel_apply(%s::jsonb)", (json.dumps([channel]),)
        )
        yield server


def test_killed_after_it_was_stored_it_is_found_and_not_sent_again(
    ground: Ground, slack: SlackServer
) -> None:
    slack.keeps_silent = True
    for number in range(4):
        payload = json.dumps({"body": f"number {number}"})
        ground.connection.execute("select fencepost.enqueue('way', %s, %s::jsonb)", (ROOM, payload))
    first = ground.runtime({"SLACK_TOKEN": TOKEN})
    invoked = ground.invoke(first, "killed")
    wait_until(lambda: len(slack.messages) == 4, 15, "Slack to have stored all four")
    first.kill()
    assert invoked.result(ANSWER_SECONDS).died
    slack.keeps_silent = False
    ground.run_until(ground.closed, ground.runtime({"SLACK_TOKEN": TOKEN}), seconds=60)
    assert len(slack.messages) == 4, "each once"
    assert slack.asked, "it was asked"
    assert ground.rows("select kind::text, count(*) from fencepost.closed group by kind") == [
        ("delivered", 4)
    ]
    taken_over = "select count(*) from fencepost.attempt where taken_over and outcome = 'uncertain'"
    assert ground.number(taken_over) == 4
    ground.assert_conserved()
