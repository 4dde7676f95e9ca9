"""The sender of AWS End User Messaging: what it asks for, and what the answers mean."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Fence, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.ports import Prepared
from fencepost.senders.aws.tags import ATTEMPT_TAG, FENCE_TAG, KEY_TAG, NOTIFICATION_TAG
from fencepost.senders.aws_sms import (
    CHARACTERS_MAX,
    OF_THE_CHANNEL,
    OF_THE_NUMBER,
    OPTED_OUT,
    AwsSms,
    aws_sms,
    meaning_of,
)
from fencepost.senders.aws_sms_settings import AwsSmsSettings
from fencepost.senders.registry import fault_of
from tests.core.rows import a_channel, a_claimed
from tests.senders.aws_receiver import SECRET, answered, current, judge, says
from tests.senders.peers import Asked, Peer
from tests.senders.stage import HOST, Stage, stage

MODEL = Session().get_service_model("pinpoint-sms-voice-v2")
GOOD = (200, b'{"MessageId":"862a8790-60c0"}', ())
KEY = UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
TEXT = a_claimed(
    7,
    3,
    recipient="+4915112345678",
    payload={
        "title": "Dein Paket 😀",
        "body": "Es ist unterwegs.",
        "url": "https://shop.example/7",
    },
    idempotency_key=KEY,
    attempts=2,
)
SETTINGS: Mapping[str, Any] = {
    "origination_identity": "pool-0123",
    "message_type": "TRANSACTIONAL",
    "configuration_set": "events",
    "protect_configuration": "protect-1",
    "max_price_usd": 0.05,
    "keyword": "SHOP",
    "entity_id": "e-1",
    "template_id": "t-1",
}


def channel(on: Stage, **settings: Any) -> Channel:
    place = {"region": "eu-central-1", "endpoint": f"{on.scheme}://{HOST}"}
    return a_channel(
        sender="aws_sms", on_uncertain=OnUncertain.HOLD, settings={**place, **settings}
    )


def sender(on: Stage, **settings: Any) -> AwsSms:
    return aws_sms(channel(on, **settings), SECRET, on.transport)


def prepared(texter: AwsSms, claimed: Any = TEXT) -> Prepared:
    made = texter.prepare(claimed)
    assert isinstance(made, Prepared), made
    return made


async def sent(on: Stage, claimed: Any = TEXT, **settings: Any) -> tuple[Outcome, Asked]:
    texter = sender(on, **settings)
    reply = await texter.send(claimed, prepared(texter, claimed), timeout_seconds=10)
    return texter.classify(claimed, reply), on.servers[-1].log.requests[-1]


async def refusal(on: Stage, payload: Mapping[str, Any], recipient: str = TEXT.recipient) -> str:
    refused = sender(on).prepare(replace(TEXT, payload=payload, recipient=recipient))
    assert isinstance(refused, Rejected), refused
    return refused.reason


# --- the request ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_aws_gets_a_signed_call_of_its_own_model(protocol: str) -> None:
    async with stage() as on:
        await on.serve(says(GOOD), protocol=protocol)
        outcome, asked = await sent(on, replace(TEXT, expires_in_seconds=90.9), **SETTINGS)
        assert outcome == Delivered("862a8790-60c0")
        assert (asked.headers[":method"], asked.headers[":path"]) == ("POST", "/")
        assert asked.headers["content-type"] == "application/x-amz-json-1.0"
        assert asked.headers["x-amz-target"] == "PinpointSMSVoiceV2.SendTextMessage"
        judged = judge(asked)
        assert (judged.right, judged.service, judged.region) == (True, "sms-voice", "eu-central-1")
        assert "x-amz-target" in judged.signed
        assert current(asked)
        said = json.loads(asked.body)
        assert said == {
            "DestinationPhoneNumber": "+4915112345678",
            "OriginationIdentity": "pool-0123",
            "MessageBody": "Dein Paket 😀\nEs ist unterwegs.\nhttps://shop.example/7",
            "MessageType": "TRANSACTIONAL",
            "ConfigurationSetName": "events",
            "ProtectConfigurationId": "protect-1",
            "MaxPrice": "0.05000",
            "Keyword": "SHOP",
            "TimeToLive": 90,
            "DestinationCountryParameters": {"IN_ENTITY_ID": "e-1", "IN_TEMPLATE_ID": "t-1"},
            "Context": {
                NOTIFICATION_TAG: "7",
                FENCE_TAG: "3",
                ATTEMPT_TAG: "2",
                KEY_TAG: str(KEY),
            },
        }
        assert "😀".encode() in asked.body, "UTF-8, not escaped"
        shape = MODEL.operation_model("SendTextMessage").input_shape
        assert not ParamValidator().validate(said, shape).has_errors()


async def test_what_is_not_said_is_not_asked_for() -> None:
    async with stage() as on:
        await on.serve(says(GOOD))
        _, asked = await sent(on)
        assert json.loads(asked.body).keys() == {
            "DestinationPhoneNumber",
            "MessageBody",
            "Context",
        }


@pytest.mark.parametrize(
    ("left", "said"), [(None, None), (0.4, 5), (4.9, 5), (90.9, 90), (1e9, 259_200)]
)
async def test_the_time_that_is_left_is_the_time_to_live(
    left: float | None, said: int | None
) -> None:
    async with stage() as on:
        await on.serve(says(GOOD))
        _, asked = await sent(on, replace(TEXT, expires_in_seconds=left))
        assert json.loads(asked.body).get("TimeToLive") == said


async def test_the_digest_is_over_what_is_read_alone() -> None:
    async with stage() as on:
        plain = prepared(sender(on)).digest
        later = replace(TEXT, fence=Fence(4), attempts=3, expires_in_seconds=9.0)
        assert prepared(sender(on, configuration_set="e", max_price_usd=1), later).digest == plain
        assert prepared(sender(on, origination_identity="other")).digest != plain
        assert prepared(sender(on), replace(TEXT, payload={"body": "b"})).digest != plain
        assert len(plain) == 16


async def test_the_raw_block_is_laid_over_the_request() -> None:
    async with stage() as on:
        await on.serve(says(GOOD))
        raw = {"MessageBody": "other", "MessageType": "PROMOTIONAL", "Context": {"order": "7"}}
        row = replace(TEXT, payload={**TEXT.payload, "raw": {"aws_sms": raw}})
        _, asked = await sent(on, row, message_type="TRANSACTIONAL")
        said = json.loads(asked.body)
        assert (said["MessageBody"], said["MessageType"]) == ("other", "PROMOTIONAL")
        assert said["Context"]["order"] == "7"
        assert len(said["Context"]) == 5


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({}, "nothing to say: no title, body, url or raw.aws_sms.MessageBody"),
        ({"body": " \n"}, "nothing to say: no title, body, url or raw.aws_sms.MessageBody"),
        ({"body": "x" * 1601}, f"text has 1601 characters, AWS takes {CHARACTERS_MAX}"),
        (
            {"body": "b", "raw": {"aws_sms": {"DestinationPhoneNumber": "+49"}}},
            "raw.aws_sms: DestinationPhoneNumber is the notification's own",
        ),
        (
            {"body": "b", "raw": {"aws_sms": {"DryRun": True}}},
            "raw.aws_sms: DryRun is the notification's own",
        ),
        (
            {"body": "b", "raw": {"aws_sms": {"Context": {"a": "1", "b": "2"}}}},
            "raw.aws_sms: Context is an object, with room for 1 of its own",
        ),
        (
            {"raw": {"aws_sms": {"MessageBody": 7}}},
            "nothing to say: no title, body, url or raw.aws_sms.MessageBody",
        ),
    ],
)
async def test_what_cannot_be_said_is_refused_before_anything_is_sent(
    payload: Mapping[str, Any], why: str
) -> None:
    async with stage() as on:
        assert await refusal(on, payload) == why


@pytest.mark.parametrize(
    "recipient", ["", "0151 123", "4915112345678", "+0151", "+49151x", "+" + "1" * 16]
)
async def test_the_recipient_is_a_phone_number(recipient: str) -> None:
    async with stage() as on:
        why = await refusal(on, {"body": "b"}, recipient)
        assert why == "recipient is no phone number (+4915112345678)"


# --- the answers ---


def fault(code: str, reason: object = None) -> bytes:
    said = {"__type": f"com.amazonaws.pinpointsmsvoicev2#{code}", "Message": "of +4915112345678"}
    return json.dumps({**said, **({"Reason": reason} if reason else {})}).encode()


UNVERIFIED = "DESTINATION_PHONE_NUMBER_NOT_VERIFIED"
SPENT = "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT"


@pytest.mark.parametrize(
    ("status", "code", "reason", "outcome"),
    [
        (400, "ValidationException", "INVALID_PARAMETER", Rejected),
        (400, "ValidationException", "DESTINATION_COUNTRY_BLOCKED", Rejected),
        (400, "ValidationException", "PRICE_OVER_THRESHOLD", Rejected),
        (400, "ValidationException", None, Rejected),
        (400, "ValidationException", "SENDER_ID_NOT_REGISTERED", CredentialFailure),
        (400, "ConflictException", OPTED_OUT, Unregistered),
        (400, "ConflictException", UNVERIFIED, Rejected),
        (400, "ConflictException", "REGISTRATION_NOT_COMPLETE", CredentialFailure),
        (400, "ConflictException", None, CredentialFailure),
        (400, "ResourceNotFoundException", None, CredentialFailure),
        (400, "ServiceQuotaExceededException", SPENT, CredentialFailure),
        (400, "AccessDeniedException", "ACCOUNT_DISABLED", CredentialFailure),
        (400, "ValidationException", ["INVALID_ARN"], Rejected),
        (400, "ThrottlingException", None, Throttled),
        (500, "InternalServerException", None, Uncertain),
        (503, "ServiceUnavailable", None, Uncertain),
    ],
)
def test_every_refusal_has_one_meaning(
    status: int, code: str, reason: object, outcome: type[Outcome]
) -> None:
    found = meaning_of(answered(status, fault(code, reason)))
    assert type(found) is outcome
    assert not isinstance(found, Delivered)
    assert code in found.reason
    if isinstance(reason, str):
        assert found.reason.endswith(f": {reason}")
    assert "+49" not in found.reason


def test_the_reasons_are_those_of_the_service() -> None:
    known = set(MODEL.shape_for("ConflictExceptionReason").enum)
    assert OF_THE_NUMBER | {OPTED_OUT} <= known
    assert set(MODEL.shape_for("ValidationExceptionReason").enum) >= OF_THE_CHANNEL


def test_a_reason_that_is_no_word_is_not_repeated() -> None:
    found = meaning_of(answered(400, fault("ValidationException", "of +49 151 and more")))
    assert found == Rejected("ValidationException (400): an unknown error")


def test_a_page_that_is_not_awss_is_not_a_delivery() -> None:
    assert isinstance(meaning_of(answered(200, b"<html>hello</html>")), Uncertain)
    assert isinstance(meaning_of(answered(302, b"")), CredentialFailure)


async def test_what_was_taken_and_whose_answer_was_lost_is_in_doubt() -> None:
    taken: list[bytes] = []

    async def takes_and_hangs_up(peer: Peer) -> None:
        taken.append((await peer.request()).body)
        peer.reset()

    async with stage() as on:
        server = await on.serve(takes_and_hangs_up)
        texter = sender(on)
        reply = await texter.send(TEXT, prepared(texter), timeout_seconds=10)
        assert isinstance(texter.classify(TEXT, reply), Uncertain)
        assert (len(taken), server.log.connections) == (1, 1), "and nothing repeats it"


# --- settings and facility ---


async def test_doubt_waits_for_events_where_there_are_any() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility()
        told = sender(on, configuration_set="events", events_within_seconds=60).facility
        assert told == Facility(evidence_within_seconds=60.0)
        assert await sender(on).ask(TEXT, timeout_seconds=1) is None
    assert "reconcile cannot work" in (fault_of("aws_sms", {}, None, "reconcile") or "")
    assert fault_of("aws_sms", {"configuration_set": "e"}, None, "reconcile") is None


@pytest.mark.parametrize(
    "settings",
    [
        {"message_type": "Transactional"},
        {"max_price_usd": 0},
        {"max_price_usd": 100},
        {"origination_identity": ""},
        {"events_within_seconds": 0},
        {"pool": "x"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, AwsSmsSettings)
