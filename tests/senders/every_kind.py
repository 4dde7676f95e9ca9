"""One channel of every kind we bring, and a recipient it takes: what all of them promise is tested on all of them.

Run as a program it prints the digest of the same messages by every kind: another process must print the same.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from fencepost.core.reply import Reply
from fencepost.ports import Prepared, Sender
from fencepost.senders.registry import OUR_OWN, kind_of
from fencepost.senders.request import Request
from fencepost.senders.transport import Transport
from tests.senders.aws_receiver import SECRET as AWS_SECRET
from tests.senders.claimed import claimed
from tests.senders.push_receiver import Browser, b64url
from tests.senders.test_registry import CHANNEL
from tests.senders.test_registry import SECRET as WEBHOOK_SECRET
from tests.senders.tokens import EC_PEM, RSA_PEM
from tests.senders.twilio_server import ACCOUNT as TWILIO_ACCOUNT
from tests.senders.twilio_server import SECRET as TWILIO_SECRET

PUSH_KEY = ec.derive_private_key(0x5EED << 190, ec.SECP256R1())
BROWSER = Browser(PUSH_KEY, bytes(range(16)))
GOOGLE = {
    "type": "service_account",
    "project_id": "shop-4711",
    "private_key_id": "0123456789abcdef",
    "private_key": RSA_PEM,
    "client_email": "push@shop-4711.iam.gserviceaccount.com",
    "token_uri": "https://hook.test/token",
}
SNS_ENDPOINT = (
    "arn:aws:sns:eu-central-1:123456789012:endpoint/{}/shop/5e3e9847-3183-3f18-a7e8-671c3a57d4b3"
)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A working channel. `secrets`: what of its secret must never be seen."""

    settings: Mapping[str, Any]
    secret: str
    secrets: tuple[str, ...]
    recipients: tuple[str, ...]


EXAMPLES: Mapping[str, Example] = {
    "webhook": Example(
        settings={},
        secret=WEBHOOK_SECRET,
        secrets=(WEBHOOK_SECRET[6:],),
        recipients=("https://hook.test/in?token=hush",),
    ),
    "slack": Example(
        settings={}, secret="xoxb-1-secret", secrets=("xoxb-1-secret",), recipients=("C0123ABC",)
    ),
    "slack_webhook": Example(
        settings={},
        secret="https://hooks.slack.com/services/T0/B0/verysecret",
        secrets=("verysecret",),
        recipients=("ops",),
    ),
    "twilio": Example(
        settings={"account_sid": TWILIO_ACCOUNT, "from": "+14155550123"},
        secret=TWILIO_SECRET,
        secrets=("verysecret",),
        recipients=("+14155550100",),
    ),
    "telegram": Example(
        settings={}, secret="123456:AAsecret_-x", secrets=("AAsecret",), recipients=("-100200",)
    ),
    "smtp": Example(
        settings={"host": "mail.example", "from": "Shop <shop@shop.example>"},
        secret="shop:correct-horse",
        secrets=("correct-horse",),
        recipients=("somebody@mail.example",),
    ),
    "sns": Example(
        settings={"region": "eu-central-1"},
        secret=AWS_SECRET,
        secrets=tuple(json.loads(AWS_SECRET).values()),
        recipients=(
            "+4915112345678",
            SNS_ENDPOINT.format("GCM"),
            SNS_ENDPOINT.format("APNS"),
            SNS_ENDPOINT.format("ADM"),
            SNS_ENDPOINT.format("BAIDU"),
        ),
    ),
    "ses": Example(
        settings={"region": "eu-central-1", "from_address": "Shop <orders@shop.example>"},
        secret=AWS_SECRET,
        secrets=tuple(json.loads(AWS_SECRET).values()),
        recipients=("somebody@mail.example",),
    ),
    "aws_sms": Example(
        settings={"region": "eu-central-1"},
        secret=AWS_SECRET,
        secrets=tuple(json.loads(AWS_SECRET).values()),
        recipients=("+4915112345678",),
    ),
    "fcm": Example(
        settings={},
        secret=json.dumps(GOOGLE),
        secrets=tuple(RSA_PEM.splitlines()[1:3]),
        recipients=("cT0k3n-_:APA91bxxxxxxxxx", "topic:news", "condition:'a' in topics"),
    ),
    "apns": Example(
        settings={"topic": "com.example.shop", "team_id": "TEAM123456", "key_id": "KEY1234567"},
        secret=EC_PEM,
        secrets=tuple(EC_PEM.splitlines()[1:3]),
        recipients=("ab12" * 16,),
    ),
    "webpush": Example(
        settings={"subject": "mailto:push@sender.test"},
        secret=b64url(PUSH_KEY.private_numbers().private_value.to_bytes(32, "big")),
        secrets=(b64url(PUSH_KEY.private_numbers().private_value.to_bytes(32, "big")),),
        recipients=(BROWSER.subscription("https://push.test/push/JzLQ3raZ"),),
    ),
    "expo": Example(
        settings={},
        secret="expo-access-token",
        secrets=("expo-access-token",),
        recipients=("ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]",),
    ),
}


class Answering(Transport):
    """A way out that answers everything alike, and keeps what it was given."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.sent: list[Request] = []

    async def send(self, request: Request, *, timeout_seconds: float) -> Reply:
        self.sent.append(request)
        return self.reply


def sender_of(kind: str, transport: Transport) -> Sender:
    example = EXAMPLES[kind]
    channel = replace(CHANNEL, sender=kind, settings=example.settings)
    return kind_of(kind).build(channel, example.secret, transport)


PAYLOADS: tuple[Mapping[str, Any], ...] = (
    {"title": "Your order has left", "body": "It comes on Tuesday. 😀"},
    {
        "title": "Größe",
        "body": "b",
        "html": "<p>b</p>",
        "url": "https://shop.example/1",
        "image": "https://shop.example/1.png",
        "icon": "bell",
        "sound": "ding",
        "collapse": "order-1",
        "thread": "orders",
        "category": "order",
        "type": "order.left",
        "urgency": "high",
        "badge": 3,
        "data": {"z": 1, "a": {"y": [1, 2.5, None], "b": "é"}, "m": True},
    },
    {"body": "b", "silent": True, "data": {"b": 1, "a": 2}},
)


def digests() -> dict[str, str]:
    """By kind, recipient and payload."""
    found = {}
    for kind in OUR_OWN:
        sender = sender_of(kind, Answering.__new__(Answering))
        for recipient in EXAMPLES[kind].recipients:
            for number, payload in enumerate(PAYLOADS):
                made = sender.prepare(claimed(recipient=recipient, payload=payload))
                told = made.digest.hex() if isinstance(made, Prepared) else str(made)
                found[f"{kind} {recipient} {number}"] = told
    return found


def _a_day_later(now: Callable[[], float]) -> Callable[[], float]:
    return lambda: now() + 86_400.0


if __name__ == "__main__":
    time.time = _a_day_later(time.time)
    print(json.dumps(digests()))
