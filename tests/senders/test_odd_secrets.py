"""Secrets that are none: refused without being quoted, or sent as HTTP can carry them (G9, G10)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from fencepost.attempt import attempt
from fencepost.core.channel import Channel
from fencepost.core.outcome import Delivered
from fencepost.ports import SenderUnavailable
from fencepost.senders.registry import OUR_OWN, SenderRegistry
from fencepost.senders.transport import Transport
from tests.senders.aws_receiver import KEYS
from tests.senders.claimed import claimed
from tests.senders.every_kind import EXAMPLES, GOOGLE
from tests.senders.peers import Asked, H1Peer, Peer
from tests.senders.test_registry import CHANNEL
from tests.senders.threaded import serving

ODD = (
    "é",
    "\ufffd",
    "\r\nx-evil: 1",
    "a\0b",
    "😀",
    "\ud800",
    "x" * 70_000,
    " ",
    "\u2028",
    "\t",
    "{}",
    "[]",
    "null",
)
DEEP = ("[" * 100_000, '{"a":' * 50_000, "1" * 5_000, ":", "a:b")
ANSWER = b'{"ok":true,"sid":"S","name":"n","MessageId":"1","access_token":"t","expires_in":3599}'


@dataclass
class Taking:
    asked: list[Asked] = field(default_factory=list)

    async def script(self, peer: Peer) -> None:
        assert isinstance(peer, H1Peer)
        self.asked.append(await peer.request())
        await peer.answer(self.asked[-1], 200, ANSWER)
        peer.fin()


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[Taking, str]]:
    taking = Taking()
    with serving(taking.script) as port:
        yield taking, f"http://127.0.0.1:{port}"


def odd_secrets(kind: str, here: str) -> Iterator[str]:
    good = f"{here}/services/T0/B0/x" if kind == "slack_webhook" else EXAMPLES[kind].secret
    yield from (*ODD, *DEEP)
    for odd in ODD[:10]:
        yield good[: len(good) // 2] + odd + good[len(good) // 2 :]
    for key in KEYS if kind in ("sns", "ses", "aws_sms") else ():
        yield from (json.dumps({**KEYS, key: KEYS[key] + odd}) for odd in ODD)
    for key in ("project_id", "client_email", "token_uri") if kind == "fcm" else ():
        account = {**GOOGLE, "token_uri": f"{here}/token"}
        yield from (json.dumps({**account, key: account[key] + odd}) for odd in ODD[:7])


@pytest.mark.parametrize("kind", [kind for kind in OUR_OWN if kind != "smtp"])
def test_an_odd_secret_is_refused_or_sent_as_it_is_and_told_nowhere(
    kind: str, place: tuple[Taking, str]
) -> None:
    taking, here = place
    settings = dict(EXAMPLES[kind].settings)
    if kind not in ("webhook", "slack_webhook", "webpush"):
        settings["endpoint"] = here
    channel = replace(CHANNEL, sender=kind, settings=settings, secret_reference="odd")
    before = len(taking.asked)
    asyncio.run(all_tried(channel, odd_secrets(kind, here)))
    assert not [asked for asked in taking.asked[before:] if "x-evil" in asked.headers]


async def all_tried(channel: Channel, secrets: Iterator[str]) -> None:
    transport = Transport()
    for secret in secrets:
        told = await tried(channel, secret, transport)
        assert "bug in" not in told
        assert len(secret.strip()) < 4 or secret.strip() not in told
        assert not [each for each in EXAMPLES[channel.sender].secrets if each in told]
    await transport.close()


async def tried(channel: Channel, secret: str, transport: Transport) -> str:
    """What is told of it."""
    try:
        sender = SenderRegistry(lambda reference: secret, transport).sender(channel)
    except SenderUnavailable as refused:
        return str(refused)
    row = claimed(recipient=EXAMPLES[channel.sender].recipients[0])
    replied = await attempt(sender, row, timeout_seconds=20, clock=lambda: 0.0)
    return "" if isinstance(replied.outcome, Delivered) else replied.outcome.reason
