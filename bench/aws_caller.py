"""A program that sends through SES or SNS, a hundred at once.

`python -m bench.aws_caller ours|boto3 ses|sns URL COUNT CORE`.
`ours` is the sender: it renders, digests, signs, sends and classifies. `boto3` is a client in as many threads, with
retries off, handed parameters that were made before. Connections are opened before the word.
"""

import asyncio
import itertools
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.member import await_end, await_word, tell
from fencepost.core.channel import AttemptPolicy, Channel
from fencepost.core.notification import ChannelId, Claimed, Fence, NotificationId, OnUncertain
from fencepost.core.outcome import Delivered
from fencepost.ports import Prepared, Sender
from fencepost.senders.registry import kind_of
from fencepost.senders.transport import Transport

IN_FLIGHT = 100
WARM_CALLS = 300
REGION = "eu-central-1"
KEYS = {
    "access_key_id": "AKIDEXAMPLE",
    "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}
SETTINGS = {
    "ses": {"from_address": "Shop <orders@shop.example>", "configuration_set": "events"},
    "sns": {},
}
RECIPIENTS = {
    "ses": "ann@mail.example",
    "sns": f"arn:aws:sns:{REGION}:123456789012:endpoint/APNS/shop/5e3e9847-3183-3f18-a7e8-671c3a57d4b3",
}
PAYLOAD = {
    "title": "Your order has left",
    "body": "It should be with you on Tuesday. " * 5,
    "url": "https://shop.example/orders/7",
    "data": {"order": "7"},
}


def row(service: str, number: int) -> Claimed:
    return Claimed(
        id=NotificationId(number),
        fence=Fence(1),
        channel=ChannelId(1),
        recipient=RECIPIENTS[service],
        payload=PAYLOAD,
        idempotency_key=uuid.UUID(int=number),
        attempts=1,
        interruptions=0,
        doubt=False,
        age_seconds=0.0,
        first_attempt_age_seconds=None,
        first_digest=None,
        evidence=None,
        expires_in_seconds=3600.0,
        lease_left_seconds=20.0,
        on_uncertain=None,
    )


def sender(service: str, url: str, transport: Transport) -> Sender:
    channel = Channel(
        id=ChannelId(1),
        name=service,
        sender=service,
        settings={"region": REGION, "endpoint": url, **SETTINGS[service]},
        secret_reference=None,
        slots=IN_FLIGHT,
        rate_per_second=None,
        on_uncertain=OnUncertain.HOLD,
        policy=AttemptPolicy(),
        revision=1,
        paused_for_seconds=0.0,
        pause_reason=None,
    )
    return kind_of(service).build(channel, json.dumps(KEYS), transport)


async def deliver(out: Sender, claimed: Claimed) -> None:
    prepared = out.prepare(claimed)
    if not isinstance(prepared, Prepared):
        raise TypeError(prepared)
    reply = await out.send(claimed, prepared, timeout_seconds=60)
    outcome = out.classify(claimed, reply)
    if not isinstance(outcome, Delivered) or outcome.reference is None:
        raise TypeError(outcome)


class Ours:
    """The product's sender over the product's transport, in one loop."""

    def __init__(self, service: str, url: str) -> None:
        self._runner = asyncio.Runner()
        self._transport = Transport()
        self._sender = sender(service, url, self._transport)
        self._service = service

    def call(self, count: int) -> None:
        self._runner.run(self._calls(iter(range(1, count + 1))))

    async def _calls(self, numbers: Iterator[int]) -> None:
        async def one_after_the_other() -> None:
            for number in numbers:
                await deliver(self._sender, row(self._service, number))

        await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


class Boto3:
    """A client as it is told to be used: one, in a pool of threads."""

    def __init__(self, service: str, url: str) -> None:
        import boto3
        from botocore.config import Config

        self._pool = ThreadPoolExecutor(IN_FLIGHT)
        client = boto3.client(
            {"ses": "sesv2", "sns": "sns"}[service],
            region_name=REGION,
            endpoint_url=url,
            verify=os.environ["SSL_CERT_FILE"],
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
            config=Config(max_pool_connections=IN_FLIGHT, retries={"total_max_attempts": 1}),
        )
        self._method: Callable[..., Any] = client.send_email if service == "ses" else client.publish
        self._parameters = parameters(service, url)

    def call(self, count: int) -> None:
        for answer in self._pool.map(self._one, range(count)):
            if "MessageId" not in answer:
                raise TypeError(answer)

    def _one(self, number: int) -> Any:
        return self._method(**self._parameters)


def parameters(service: str, url: str) -> dict[str, Any]:
    """What our sender sends, as boto3 takes it."""
    claimed = row(service, 1)
    made: Any = sender(service, url, Transport()).prepare(claimed)
    if service == "ses":
        names = ("notification", "fence", "attempt", "key")
        tags = [
            {"Name": f"fencepost-{name}", "Value": str(claimed.idempotency_key)} for name in names
        ]
        return {**made.request, "EmailTags": tags}
    lives = {made.request.ttl_attribute: "3600"}
    attributes = {
        name: {"DataType": "String", "StringValue": value}
        for name, value in itertools.chain(made.request.attributes.items(), lives.items())
    }
    return {**made.request.fields, "MessageAttributes": attributes}


def main(who: str, service: str, url: str, count: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    caller = Ours(service, url) if who == "ours" else Boto3(service, url)
    caller.call(WARM_CALLS)
    await_word()
    began, cpu_began = time.monotonic(), time.process_time()
    caller.call(count)
    tell(done=True, began=began, ended=time.monotonic(), cpu=time.process_time() - cpu_began)
    await_end()
    os._exit(0)  # connections and all


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
