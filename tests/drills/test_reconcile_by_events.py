"""A run that dies after SES has taken its mails: their events settle them, through the queue of commands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rig.event_source import event_of
from rig.ground import wait_until
from rig.runtimes import Runtime
from tests.drills.ground import ANSWER_SECONDS, INSTALLATION, POLICY, Ground
from tests.drills.yard import TASK_ROOT
from tests.senders.aws_receiver import SECRET
from tests.senders.peers import Peer
from tests.senders.stage import never
from tests.senders.threaded import serving

COUNT = 4
DOUBTFUL = "select count(*) from fencepost.queue where doubt and run_id = fencepost.nobody()"


@dataclass
class Ses:
    """SES: it takes every mail, and answers none as long as it is silent."""

    silent: bool = True
    mails: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            self.mails.append(json.loads(asked.body))
            if self.silent:
                await never()
            await peer.answer(asked, 200, b'{"MessageId":"0101"}')

    def key(self, number: int) -> str:
        (key,) = (tag["Value"] for tag in self.mails[number]["EmailTags"] if "key" in tag["Name"])
        return str(key)

    def event(self, kind: str, number: int) -> str:
        """As SES tells it of a mail it took."""
        tags = {tag["Name"]: [tag["Value"]] for tag in self.mails[number]["EmailTags"]}
        mail = {"messageId": f"0100-{number}", "tags": tags}
        return json.dumps({"eventType": kind, "mail": mail, kind.lower(): {}})


@pytest.fixture
def ses(ground: Ground) -> Iterator[Ses]:
    server = Ses()
    with serving(server) as port:
        channel = {
            "name": "mail",
            "sender": "ses",
            "settings": {
                "from_address": "shop@shop.example",
                "region": "eu-central-1",
                "configuration_set": "told",
                "endpoint": f"http://127.0.0.1:{port}",
            },
            "secret_reference": "env:SES_KEYS",
            "on_uncertain": "reconcile",
            "slots": COUNT,
            "policy": POLICY,
        }
        ground.connection.execute("select fencepost.bind('drill')")
        apply = "select * from fencepost.channel_apply(%s::jsonb)"
        ground.connection.execute(apply, (json.dumps([channel]),))
        yield server


@pytest.fixture
def teller(ground: Ground, tmp_path: Path) -> Iterator[Runtime]:
    """The function that takes what comes by the queue of commands."""
    own = {"DATABASE_URL": ground.url, "FENCEPOST_INSTALLATION": INSTALLATION}
    with Runtime(
        own, timeout_seconds=20, folder=tmp_path, name="teller", task_root=TASK_ROOT
    ) as one:
        yield one


def test_killed_after_ses_took_them_events_close_them_and_nothing_goes_twice(
    ground: Ground, ses: Ses, teller: Runtime
) -> None:
    for number in range(COUNT):
        to = f"somebody-{number}@mail.example"
        ground.connection.execute(
            'select fencepost.enqueue(\'mail\', %s, \'{"title": "t", "body": "b"}\')', (to,)
        )
    first = ground.runtime({"SES_KEYS": SECRET})
    invoked = ground.invoke(first, "killed")
    wait_until(lambda: len(ses.mails) == COUNT, 15, "SES to have taken all")
    first.kill()
    assert invoked.result(ANSWER_SECONDS).died
    second = ground.runtime({"SES_KEYS": SECRET})
    ground.run_until(lambda: ground.number(DOUBTFUL) == COUNT, second, seconds=60)
    assert len(ses.mails) == COUNT, "what is in doubt waits for its event"
    told = [ses.event("Send", 0), ses.event("Delivery", 1), ses.event("Reject", 2)] * 2
    messages = [
        {"MessageId": str(n), "ReceiptHandle": "0", "Body": said} for n, said in enumerate(told)
    ]
    assert teller.invoke(event_of(messages)).summary == {"batchItemFailures": []}
    ses.silent = False
    ground.run_until(lambda: ground.number("select count(*) from fencepost.queue") == 1, second)
    kinds = "select kind::text, count(*) from fencepost.closed group by 1"
    assert ground.rows(kinds) == [("delivered", COUNT - 1)]
    assert ground.number(DOUBTFUL) == 1, "of one nothing was told: it waits on"
    assert len(ses.mails) == COUNT + 1, "only what was surely not sent went again"
    assert ses.key(COUNT) == ses.key(2)
    for secret in json.loads(SECRET).values():
        assert secret not in first.log() + second.log() + teller.log()
    ground.assert_conserved()
