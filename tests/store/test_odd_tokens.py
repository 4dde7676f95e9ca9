"""Whole runs whose token service misbehaves: whatever it says, no message has left, so nothing is in doubt."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from tests.senders.every_kind import EXAMPLES, GOOGLE
from tests.senders.peers import H1Peer, Peer
from tests.senders.threaded import serving
from tests.store.nonsense import ground
from tests.store.postgres_bench import PostgresBench
from tests.store.test_odd_answers import HUGE, page

pytestmark = pytest.mark.postgres
TOKEN = b'{"access_token":"token-secret","expires_in":%b}'
REFUSED = b'{"error":"payload-secret token-secret","error_description":"token-secret"}'
# None of them gives a token.
ODD = (
    page("200 OK", b"<html>welcome</html>"),
    page("200 OK", b'{"access_token":["token-secret"]}'),
    page("200 OK", b'{"access_token":"token-secret\\r\\nx-evil: 1","expires_in":3599}'),
    page("200 OK", b'{"access_token":"token-secret\\u2028","expires_in":3599}'),
    page("200 OK", b'{"access_token":"","expires_in":3599}'),
    page("200 OK", HUGE),
    page("204 Empty"),
    page("302 Found", headers=b"location: http://169.254.169.254/token-secret\r\n"),
    page("400 No", REFUSED),
    page("401 No", b"\xff\0"),
    page("403 No", b'{"error":{"code":1e400}}'),
    page("429 Slow", headers=b"retry-after: 1e300\r\n"),
    page("500 No", b'{"error":"token-secret"}'),
    b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + TOKEN % b"3599",
    b"HTTP/1.1 200 OK\r\n",
    b"\0" * 64,
    b"",
)
# What a token's life is told to be; the token itself is good.
LIVES = (
    b"-5",
    b"0",
    b"0.001",
    b'"soon"',
    b"null",
    b"true",
    b"1e400",
    b"NaN",
    b"1" + b"0" * 400,
    b"[]",
)


@dataclass
class Google:
    """Its token service answers each question with the next, the last for ever; every message is taken."""

    answers: list[bytes]
    asked: int = 0
    messages: list[str] = field(default_factory=list)

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H1Peer)  # raw bytes
        asked = await peer.request()
        if asked.headers[":path"] == "/token":
            self.asked += 1
            await peer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        else:
            self.messages.append(asked.headers["authorization"])
            await peer.write(page("200 OK", b'{"name":"projects/shop-4711/messages/1"}'))
        await asyncio.sleep(0)
        peer.fin()


def test_no_answer_of_a_token_service_puts_a_message_in_doubt(bench: PostgresBench) -> None:
    good = page("200 OK", TOKEN % b"3599")
    google = Google([*ODD, good])
    with serving(google.script) as port:
        here = f"http://127.0.0.1:{port}"
        account = json.dumps({**GOOGLE, "token_uri": f"{here}/token"})
        recipient = EXAMPLES["fcm"].recipients[0]
        hidden = (recipient, "token-secret", *EXAMPLES["fcm"].secrets)
        with ground(bench, "fcm", {"endpoint": here}, account, hidden=hidden) as odd:
            odd.enqueue(recipient, 2)
            odd.run_until(lambda: odd.delivered() == 2, 2 * len(ODD))
            odd.assert_honest()
    assert google.messages == ["Bearer token-secret"] * 2
    assert bench.rows("select distinct attempts from fencepost.closed") == [(1,)]
    assert odd.outcomes() == {"not_sent", "delivered"}


def test_whatever_life_a_token_is_told_to_have_it_is_used(bench: PostgresBench) -> None:
    google = Google([page("200 OK", TOKEN % life) for life in LIVES])
    with serving(google.script) as port:
        here = f"http://127.0.0.1:{port}"
        account = json.dumps({**GOOGLE, "token_uri": f"{here}/token"})
        recipient = EXAMPLES["fcm"].recipients[0]
        with ground(bench, "fcm", {"endpoint": here}, account, hidden=(recipient,)) as odd:
            for _ in LIVES:  # each run with a sender of its own: nobody has a token yet
                odd.enqueue(recipient, 1)
                bench.admin.execute("update fencepost.channel set revision = revision + 1")
                odd.run_until(lambda: odd.delivered() == len(odd.ids), 5)
            assert "bug in" not in odd.said()
    assert google.asked >= len(LIVES)
