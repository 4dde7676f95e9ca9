"""The AWS senders against moto's server: real HTTP, another implementation's idea of AWS."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from moto.ses.models import ses_backends
from moto.sns.models import sns_backends

from fencepost.core.outcome import CredentialFailure, Delivered, Outcome, Unregistered
from fencepost.ports import Prepared, Sender
from fencepost.senders.registry import kind_of
from fencepost.senders.transport import Transport
from tests.core.rows import a_channel, a_claimed
from tests.senders.aws_receiver import KEYS, SECRET

ACCOUNT = "123456789012"  # moto's
REGION = "eu-central-1"


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """Its URL."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@contextmanager
def operator(aws: str, service: str) -> Iterator[Any]:
    """Whoever sets the account up."""
    client = boto3.client(
        service,
        endpoint_url=aws,
        region_name=REGION,
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )
    yield client
    client.close()


@asynccontextmanager
async def sender(aws: str, kind: str, **settings: Any) -> AsyncIterator[Sender]:
    transport = Transport()
    channel = a_channel(sender=kind, settings={"region": REGION, "endpoint": aws, **settings})
    yield kind_of(kind).build(channel, SECRET, transport)
    await transport.close()


async def deliver(sender: Sender, **row: Any) -> Outcome:
    claimed = a_claimed(**row)
    prepared = sender.prepare(claimed)
    if not isinstance(prepared, Prepared):
        return prepared
    reply = await sender.send(claimed, prepared, timeout_seconds=10)
    return sender.classify(claimed, reply)


async def test_ses_takes_the_mail_once(aws: str) -> None:
    with operator(aws, "sesv2") as account:
        account.create_email_identity(EmailIdentity="shop.example")
    backend = ses_backends[ACCOUNT][REGION]
    before = backend.sent_message_count
    async with sender(aws, "ses", from_address="Shop <orders@shop.example>") as ses:
        payload = {"title": "Hallo 😀", "body": "text", "html": "<p>html</p>"}
        outcome = await deliver(ses, recipient="ann@mail.example", payload=payload)
    assert isinstance(outcome, Delivered)
    assert backend.sent_message_count == before + 1
    mail = backend.sent_messages[-1]
    assert mail.id == outcome.reference
    assert mail.subject == "Hallo 😀"
    assert mail.destinations == {"ToAddresses": ["ann@mail.example"]}


async def test_ses_refuses_a_stranger_and_the_channel_stops(aws: str) -> None:
    async with sender(aws, "ses", from_address="eve@other.example") as ses:
        outcome = await deliver(ses, recipient="ann@mail.example", payload={"body": "text"})
    assert isinstance(outcome, CredentialFailure)
    assert "not verified" in outcome.reason
    assert "example" not in outcome.reason


async def test_sns_publishes_to_an_endpoint_and_says_when_it_is_gone(aws: str) -> None:
    with operator(aws, "sns") as account:
        shop = account.create_platform_application(Name="shop", Platform="APNS", Attributes={})
        made = account.create_platform_endpoint(
            PlatformApplicationArn=shop["PlatformApplicationArn"], Token="t"
        )
        arn = made["EndpointArn"]
        account.set_endpoint_attributes(EndpointArn=arn, Attributes={"Enabled": "true"})
        row = {"recipient": arn, "payload": {"title": "Hallo 😀"}, "expires_in_seconds": 60.0}
        async with sender(aws, "sns") as sns:
            taken = await deliver(sns, **row)
            assert isinstance(taken, Delivered)
            assert taken.reference
            account.set_endpoint_attributes(EndpointArn=arn, Attributes={"Enabled": "false"})
            disabled = await deliver(sns, **row)
            account.delete_endpoint(EndpointArn=arn)
            gone = await deliver(sns, **row)
    assert disabled == Unregistered("EndpointDisabled (400)", guarded=True)
    assert gone == Unregistered("NotFound (404)", guarded=True)


async def test_sns_sends_a_text_as_it_was_said(aws: str) -> None:
    backend = sns_backends[ACCOUNT][REGION]
    async with sender(aws, "sns", sms_type="Transactional") as sns:
        taken = await deliver(
            sns, recipient="+15555550100", payload={"body": "Grüße & mehr = 😀 + %"}
        )
    assert isinstance(taken, Delivered)
    assert list(backend.sms_messages.values())[-1] == ("+15555550100", "Grüße & mehr = 😀 + %")
