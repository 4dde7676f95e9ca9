"""Every provider that takes a request and never answers: one request, one deadline, and doubt; nothing tries again."""

import asyncio
import time
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from fencepost.attempt import attempt
from fencepost.core.outcome import Outcome, Uncertain
from fencepost.senders.registry import OUR_OWN, kind_of
from fencepost.senders.transport import Transport
from tests.senders.claimed import claimed
from tests.senders.peers import Peer, Server
from tests.senders.stage import never
from tests.senders.test_registry import CHANNEL
from tests.store.test_odd_answers import pointed

SECONDS = 3.0  # enough for a request to leave a busy machine
ELSEWHERE = {
    "smtp",
    "webpush",
}  # tests/senders/test_smtp.py, test_webpush.py: no plain HTTP for them
KINDS = sorted(OUR_OWN.keys() - ELSEWHERE)
TOKEN = b'{"access_token":"t","expires_in":3599}'


@dataclass
class Mute:
    """Grants tokens, and says nothing to whoever brings a message."""

    messages: int = 0

    async def script(self, peer: Peer) -> None:
        asked = await peer.request()
        while asked.headers[":path"] == "/token":
            await peer.answer(asked, 200, TOKEN)
            asked = await peer.request()
        self.messages += 1
        await never()


async def sent(kind: str) -> tuple[Outcome, int]:
    """What one attempt came to, and how many messages had arrived by then."""
    provider, transport = Mute(), Transport()
    server = Server(provider.script, None)
    await server.start()
    try:
        settings, secret, recipient = pointed(kind, server.port)
        channel = replace(CHANNEL, sender=kind, settings=settings)
        sender = kind_of(kind).build(channel, secret, transport)
        row = claimed(recipient=recipient, payload={"title": "Hello", "body": "there"})
        replied = await attempt(sender, row, timeout_seconds=SECONDS, clock=time.monotonic)
        assert (replied.facts.took_ms or 0) >= SECONDS * 1000 * 0.9, "it ended by its deadline"
        return replied.outcome, provider.messages
    finally:
        await transport.close()
        await server.close()


@pytest.mark.slow
async def test_no_answer_is_one_request_and_doubt(subtests: pytest.Subtests) -> None:
    """A read timeout of five seconds became fifty, and ten copies, by retries that nobody had asked for."""
    for kind, came in zip(KINDS, await asyncio.gather(*map(sent, KINDS)), strict=True):
        with subtests.test(kind):
            outcome, messages = came
            assert isinstance(outcome, Uncertain), outcome
            assert messages == 1
