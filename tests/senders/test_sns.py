"""The SNS sender: what it publishes to apps and to phones, and what SNS's answers mean."""

import json
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared
from fencepost.senders.fcm_message import content_of
from fencepost.senders.registry import fault_of
from fencepost.senders.sns import Sns, meaning_of, sns
from fencepost.senders.sns_message import SMS_CHARACTERS_MAX, Publication, publication_of
from fencepost.senders.sns_push import NoMessage
from fencepost.senders.sns_settings import SnsSettings
from fencepost.senders.trouble import Trouble
from tests.core.rows import a_channel, a_claimed
from tests.senders.aws_receiver import SECRET, answered, current, judge, says, xml_fault
from tests.senders.peers import Asked, Peer
from tests.senders.stage import HOST, Stage, never, stage

REGION = "eu-central-1"
TAKEN = (
    200,
    b'<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>'
    b"<MessageId>94f20ce6-13c5</MessageId></PublishResult></PublishResponse>",
    (),
)
KEY = uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
PHONE = "+4915112345678"
PAYLOAD = {
    "title": "Dein Paket 😀",
    "body": "Es ist unterwegs.",
    "url": "https://shop.example/7",
    "image": "https://shop.example/7.png",
    "icon": "box",
    "sound": "ding",
    "collapse": "order-7",
    "thread": "orders",
    "category": "parcel",
    "urgency": "high",
    "badge": 3,
    "data": {"order": "7", "count": 2, "more": {"a": [1]}},
    "html": "<p>for mail</p>",
    "type": "order.left",
}


def endpoint(platform: str, *, region: str = REGION, account: str = "123456789012") -> str:
    return f"arn:aws:sns:{region}:{account}:endpoint/{platform}/shop/5e3e9847-3183-3f18-a7e8-671c3a57d4b3"


def row(recipient: str, payload: Mapping[str, Any] = PAYLOAD, **changes: Any) -> Claimed:
    return a_claimed(recipient=recipient, payload=payload, idempotency_key=KEY, **changes)


def channel(on: Stage, **settings: Any) -> Channel:
    url = f"{on.scheme}://{HOST}"
    settings = {"region": REGION, "endpoint": url, **settings}
    return a_channel(sender="sns", on_uncertain=OnUncertain.HOLD, settings=settings)


def sender(on: Stage, **settings: Any) -> Sns:
    return sns(channel(on, **settings), SECRET, on.transport)


def prepared(publisher: Sns, claimed: Claimed) -> Prepared:
    made = publisher.prepare(claimed)
    assert isinstance(made, Prepared), made
    return made


async def sent(on: Stage, claimed: Claimed, **settings: Any) -> tuple[Outcome, Asked]:
    publisher = sender(on, **settings)
    reply = await publisher.send(claimed, prepared(publisher, claimed), timeout_seconds=10)
    return publisher.classify(claimed, reply), on.servers[-1].log.requests[-1]


def form(asked: Asked) -> dict[str, str]:
    pairs = parse_qsl(asked.body.decode(), keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def attributes(asked: Asked) -> dict[str, tuple[str, str]]:
    """Name → (type, value), as the query protocol numbers them: from 1, without a gap."""
    said, found, number = form(asked), {}, 1
    while (name := said.get(f"MessageAttributes.entry.{number}.Name")) is not None:
        value = f"MessageAttributes.entry.{number}.Value"
        found[name] = (said[f"{value}.DataType"], said[f"{value}.StringValue"])
        number += 1
    assert len(said) == len([name for name in said if "Attributes" not in name]) + 3 * len(found)
    return found


def published(recipient: str, payload: Mapping[str, Any] = PAYLOAD, **settings: Any) -> Publication:
    read = msgspec.convert(settings, SnsSettings)
    return publication_of(row(recipient, payload), read, REGION)


def block(platform: str, payload: Mapping[str, Any] = PAYLOAD) -> Any:
    message = json.loads(published(endpoint(platform), payload).fields["Message"])
    return json.loads(message[platform])


def refusal(recipient: str, payload: Mapping[str, Any] = PAYLOAD, **settings: Any) -> str:
    with pytest.raises(NoMessage) as refused:
        published(recipient, payload, **settings)
    return str(refused.value)


# --- the request ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_sns_gets_a_signed_message_for_an_apps_endpoint(protocol: str) -> None:
    async with stage() as on:
        await on.serve(says(TAKEN), protocol=protocol)
        outcome, asked = await sent(on, row(endpoint("APNS"), expires_in_seconds=90.9))
        assert outcome == Delivered("94f20ce6-13c5")
        assert (asked.headers[":method"], asked.headers[":path"]) == ("POST", "/")
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded; charset=utf-8"
        judged = judge(asked)
        assert (judged.right, judged.service, judged.region) == (True, "sns", REGION)
        assert current(asked)
        said = form(asked)
        assert (said["Action"], said["Version"]) == ("Publish", "2010-03-31")
        assert said["TargetArn"] == endpoint("APNS")
        assert said["MessageStructure"] == "json"
        assert json.loads(said["Message"]).keys() == {"default", "APNS"}
        assert attributes(asked) == {
            "AWS.SNS.MOBILE.APNS.PUSH_TYPE": ("String", "alert"),
            "AWS.SNS.MOBILE.APNS.PRIORITY": ("String", "10"),
            "AWS.SNS.MOBILE.APNS.COLLAPSE_ID": ("String", "order-7"),
            "AWS.SNS.MOBILE.APNS.TTL": ("String", "90"),
        }


async def test_sns_gets_a_text_for_a_phone() -> None:
    async with stage() as on:
        await on.serve(says(TAKEN))
        outcome, asked = await sent(
            on,
            row(PHONE, expires_in_seconds=90.0),
            sms_type="Transactional",
            sms_sender_id="Shop",
            sms_origination_number="+15550100",
            sms_max_price_usd=0.05,
            sms_entity_id="e",
            sms_template_id="t",
        )
        assert isinstance(outcome, Delivered)
        assert judge(asked).right
        said = form(asked)
        assert said["PhoneNumber"] == PHONE
        assert said["Message"] == "Dein Paket 😀\nEs ist unterwegs.\nhttps://shop.example/7"
        assert not said.keys() & {"TargetArn", "TopicArn", "MessageStructure"}
        assert attributes(asked) == {
            "AWS.SNS.SMS.SMSType": ("String", "Transactional"),
            "AWS.SNS.SMS.SenderID": ("String", "Shop"),
            "AWS.SNS.SMS.MaxPrice": ("Number", "0.05000"),
            "AWS.MM.SMS.OriginationNumber": ("String", "+15550100"),
            "AWS.MM.SMS.EntityId": ("String", "e"),
            "AWS.MM.SMS.TemplateId": ("String", "t"),
        }


@pytest.mark.parametrize(
    ("platform", "expires", "attribute"),
    [
        ("APNS", 90.9, ("AWS.SNS.MOBILE.APNS.TTL", "90")),
        ("APNS_SANDBOX", 90.9, ("AWS.SNS.MOBILE.APNS_SANDBOX.TTL", "90")),
        ("APNS_VOIP", 90.9, ("AWS.SNS.MOBILE.APNS_VOIP.TTL", "90")),
        ("GCM", 90.9, ("AWS.SNS.MOBILE.FCM.TTL", "90")),
        ("ADM", 90.9, ("AWS.SNS.MOBILE.ADM.TTL", "90")),
        ("GCM", 0.4, ("AWS.SNS.MOBILE.FCM.TTL", "0")),  # now or never
        ("GCM", 9e9, ("AWS.SNS.MOBILE.FCM.TTL", "2419200")),
        ("GCM", None, None),
    ],
)
async def test_the_time_to_live_is_what_is_left_at_this_attempt(
    platform: str, expires: float | None, attribute: tuple[str, str] | None
) -> None:
    async with stage() as on:
        await on.serve(says(TAKEN))
        _, asked = await sent(on, row(endpoint(platform), expires_in_seconds=expires))
        lives = {name: value for name, (_, value) in attributes(asked).items() if "TTL" in name}
        assert lives == (dict([attribute]) if attribute else {})


async def test_every_attempt_says_the_same_and_has_the_same_digest() -> None:
    """G7. What is left of its life is of the attempt."""
    async with stage() as on:
        await on.serve(says(TAKEN))
        first = row(endpoint("GCM"), expires_in_seconds=90.0)
        again = replace(first, attempts=2, expires_in_seconds=30.0)
        publisher = sender(on)
        assert prepared(publisher, first).digest == prepared(publisher, again).digest
        _, one = await sent(on, first)
        _, two = await sent(on, again)
        assert form(one)["Message"] == form(two)["Message"]
        assert attributes(one) != attributes(two)
        other = replace(first, payload={**PAYLOAD, "title": "t"})
        assert prepared(publisher, other).digest != prepared(publisher, first).digest
        elsewhere = replace(first, recipient=endpoint("APNS"))
        assert prepared(publisher, elsewhere).digest != prepared(publisher, first).digest


# --- the vocabulary, platform by platform ---


@pytest.mark.parametrize("platform", ["APNS", "APNS_SANDBOX", "MACOS"])
def test_apple_gets_what_apple_knows(platform: str) -> None:
    assert block(platform) == {
        "aps": {
            "alert": {"title": "Dein Paket 😀", "body": "Es ist unterwegs."},
            "badge": 3,
            "sound": "ding",
            "thread-id": "orders",
            "category": "parcel",
            "mutable-content": 1,
        },
        "order": "7",
        "count": 2,
        "more": {"a": [1]},
        "url": "https://shop.example/7",
        "image": "https://shop.example/7.png",
    }


def test_fcm_gets_what_fcm_knows() -> None:
    """The same message that our own sender for FCM sends, without its token."""
    message = block("GCM")["fcmV1Message"]["message"]
    assert message == content_of(row(endpoint("GCM")))
    assert message["notification"] == {
        "title": "Dein Paket 😀",
        "body": "Es ist unterwegs.",
        "image": "https://shop.example/7.png",
    }
    assert message["data"] == {
        "order": "7",
        "count": "2",
        "more": '{"a":[1]}',
        "url": "https://shop.example/7",
    }
    assert message["android"] == {
        "priority": "HIGH",
        "collapse_key": "order-7",
        "notification": {
            "tag": "order-7",
            "channel_id": "parcel",
            "sound": "ding",
            "icon": "box",
            "notification_count": 3,
        },
    }


@pytest.mark.parametrize("platform", ["ADM", "BAIDU", "WNS", "MPNS"])
def test_other_platforms_get_the_text(platform: str) -> None:
    message = json.loads(published(endpoint(platform)).fields["Message"])
    assert message == {"default": "Dein Paket 😀\nEs ist unterwegs.\nhttps://shop.example/7"}


def test_the_message_is_utf8_and_not_escaped() -> None:
    """A character of four bytes costs four, not twelve."""
    assert "😀" in published(endpoint("APNS")).fields["Message"]


def test_a_repeat_takes_the_place_of_the_first_even_without_a_word_for_it() -> None:
    """Its own key merges its copies. FCM keeps only four collapse keys a device, so there it is a tag alone."""
    plain = {"title": "t"}
    apple = published(endpoint("APNS"), plain).attributes
    assert apple["AWS.SNS.MOBILE.APNS.COLLAPSE_ID"] == str(KEY)
    android = block("GCM", plain)["fcmV1Message"]["message"]["android"]
    assert android == {"notification": {"tag": str(KEY)}}


def test_a_collapse_id_that_no_attribute_can_hold_is_hashed() -> None:
    found = published(endpoint("APNS"), {"title": "t", "collapse": "😀"}).attributes
    hashed = found["AWS.SNS.MOBILE.APNS.COLLAPSE_ID"]
    assert len(hashed) == 32
    assert hashed.isascii()


def test_what_is_silent_shows_nothing() -> None:
    quiet = {"silent": True, "title": "t", "badge": 1, "sound": "s", "data": {"sync": "1"}}
    woken = {
        "aps": {"content-available": 1},
        "fencepost_key": str(KEY),
    }  # by which the app tells a repeat
    assert block("APNS", quiet) == {**woken, "sync": "1"}
    message = block("GCM", quiet)["fcmV1Message"]["message"]
    assert message["data"] == {"sync": "1", "fencepost_key": str(KEY)}
    assert "notification" not in message
    found = published(endpoint("APNS"), quiet).attributes
    assert found["AWS.SNS.MOBILE.APNS.PUSH_TYPE"] == "background"
    assert found["AWS.SNS.MOBILE.APNS.PRIORITY"] == "5", "Apple refuses any other"


def test_data_alone_is_told_to_apple_as_what_it_is() -> None:
    """Without `aps` a device ignores it, and as an alert Apple refuses it."""
    only = {"data": {"sync": "1"}}
    made = block("APNS", only)
    assert (made["aps"], made["sync"]) == ({"content-available": 1}, "1")
    assert (
        published(endpoint("APNS"), only).attributes["AWS.SNS.MOBILE.APNS.PUSH_TYPE"]
        == "background"
    )
    badge = published(endpoint("APNS"), {"badge": 0})
    assert badge.attributes["AWS.SNS.MOBILE.APNS.PUSH_TYPE"] == "alert"
    assert block("APNS", {"badge": 0}) == {"aps": {"badge": 0}}


@pytest.mark.parametrize(
    ("urgency", "apple", "fcm"),
    [
        ("low", "5", "NORMAL"),
        ("normal", "10", "NORMAL"),
        ("high", "10", "HIGH"),
        (None, "10", None),
    ],
)
def test_urgency_is_handed_on(urgency: str | None, apple: str, fcm: str | None) -> None:
    payload = {"title": "t", **({"urgency": urgency} if urgency else {})}
    found = published(endpoint("APNS"), payload).attributes
    assert found["AWS.SNS.MOBILE.APNS.PRIORITY"] == apple
    assert block("GCM", payload)["fcmV1Message"]["message"]["android"].get("priority") == fcm


def test_a_call_is_not_merged_with_another() -> None:
    found = published(endpoint("APNS_VOIP")).attributes
    assert found["AWS.SNS.MOBILE.APNS.PUSH_TYPE"] == "voip"
    assert "AWS.SNS.MOBILE.APNS.COLLAPSE_ID" not in found


@pytest.mark.parametrize("key", ["from", "message_type", "google.x", "gcm.x"])
def test_keys_that_fcm_keeps_for_itself_are_refused_here(key: str) -> None:
    """Behind SNS nobody would hear of it."""
    assert refusal(endpoint("GCM"), {"data": {key: "hunter2"}}) == (
        "data has a key that FCM keeps for itself (from, message_type, google., gcm.)"
    )
    assert block("APNS", {"data": {key: "x"}})[key] == "x"


# --- raw ---


def test_the_raw_block_goes_over_the_platforms_object_by_object() -> None:
    raw = {
        "sns": {
            "default": "plain",
            "APNS": {"aps": {"sound": "other", "interruption-level": "critical"}},
            "GCM": {"android": {"ttl": "5s"}},
            "ADM": {"data": {"a": "b"}},
            "attributes": {"AWS.SNS.MOBILE.APNS.PRIORITY": "1", "AWS.SNS.MOBILE.FCM.TTL": "7"},
        }
    }
    payload = {"title": "t", "sound": "ding", "raw": raw}
    for platform in ("APNS", "APNS_SANDBOX"):
        assert block(platform, payload)["aps"] == {
            "alert": {"title": "t"},
            "sound": "other",
            "interruption-level": "critical",
        }
    message = block("GCM", payload)["fcmV1Message"]["message"]
    assert message["android"]["ttl"] == "5s"
    assert message["android"]["notification"]["tag"] == str(KEY)
    assert block("ADM", payload) == {"data": {"a": "b"}}
    assert published(endpoint("APNS"), payload).attributes["AWS.SNS.MOBILE.APNS.PRIORITY"] == "1"
    assert published(endpoint("GCM"), payload).ttl_attribute is None, "its own stands"
    sms = published(PHONE, payload, sms_type="Promotional")
    assert sms.fields["Message"] == "plain"


@pytest.mark.parametrize(
    "raw",
    [
        {"default": 5},
        {"attributes": []},
        {"attributes": {"a": 5}},
        {"GCM": "text"},
        {"APNS": None},
        {"ADM": [1]},
    ],
)
@pytest.mark.parametrize("recipient", [PHONE, endpoint("GCM")])
def test_a_raw_block_that_nothing_can_be_built_on_is_rejected(recipient: str, raw: Any) -> None:
    told = refusal(recipient, {"title": "t", "raw": {"sns": raw}})
    assert (
        told
        == "raw.sns: default is a string, attributes are strings by name, platforms are objects"
    )


# --- what is rejected before it is sent ---


@pytest.mark.parametrize(
    "recipient",
    [
        "",
        "4915112345678",
        "+0915112345678",
        "+49 151 12345678",
        "+491511234567890123",
        "+\uff14\uff1915112345678",  # full-width digits
        "+4915112345678\n",
        "arn:aws:sns:eu-central-1:123456789012:topic",
        "arn:aws:sns:eu-central-1:123456789012:app/GCM/shop",
        "arn:aws:sqs:eu-central-1:123456789012:queue",
        endpoint("GCM") + "/x",
        "ann@mail.example",
        "https://shop.example/",
    ],
)
def test_only_a_number_or_an_apps_endpoint_is_a_recipient(recipient: str) -> None:
    """No topic: a topic is many recipients."""
    assert refusal(recipient) == (
        "recipient is neither a phone number (+4915112345678) nor the ARN of an app's endpoint"
    )


def test_an_endpoint_of_elsewhere_is_no_reason_to_stop_the_channel() -> None:
    """IAM would refuse it as it refuses a channel without permission, and one row would pause all of them."""
    assert "another region" in refusal(endpoint("GCM", region="us-east-1"))
    stranger = endpoint("GCM", account="999999999999")
    assert "another account" in refusal(stranger, account_id="123456789012")
    assert published(stranger), "where the channel does not say, IAM decides"
    assert published(endpoint("GCM"), account_id="123456789012")


@pytest.mark.parametrize("payload", [{}, {"html": "<p>x</p>"}, {"thread": "t", "type": "x"}])
def test_a_message_that_says_nothing_is_rejected(payload: Any) -> None:
    assert refusal(PHONE, payload).startswith("nothing to say")
    assert refusal(endpoint("GCM"), payload).startswith("nothing to show")
    assert refusal(endpoint("WNS"), payload).startswith("nothing to show")


def test_a_raw_block_names_no_other_recipient() -> None:
    """SNS puts the endpoint's own token there."""
    raw = {"sns": {"GCM": {"token": "another"}}}
    assert refusal(endpoint("GCM"), {"title": "t", "raw": raw}) == (
        "raw.sns.GCM names a target: that is the recipient's place"
    )


def test_an_app_is_not_woken_for_nothing() -> None:
    assert refusal(endpoint("APNS"), {"type": "x"}).startswith("nothing to show")
    assert block("APNS", {"silent": True})["aps"] == {"content-available": 1}
    assert (
        refusal(endpoint("APNS"), {"data": {"aps": {}}}) == "payload.data: the key aps is Apple's"
    )


@pytest.mark.parametrize(
    ("platform", "limit"),
    [("APNS", 4096), ("APNS_SANDBOX", 4096), ("APNS_VOIP", 5120), ("GCM", 4096)],
)
def test_the_platforms_limit_is_of_encoded_bytes(platform: str, limit: int) -> None:
    """Counted in bytes. SNS would take it and the platform drop it, and nobody be told."""

    def size(text: str) -> int:
        made = block(platform, {"body": text})
        if platform == "GCM":
            made = {"notification": made["fcmV1Message"]["message"]["notification"]}
        return len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode())

    room = (limit - size("😀")) // 4
    fits = "😀" * (1 + room)
    assert limit - 4 < size(fits) <= limit
    told = refusal(endpoint(platform), {"body": fits + "😀"})
    assert (
        told == f"the message for {platform} has {size(fits) + 4} bytes, the provider takes {limit}"
    )


def test_the_whole_message_has_a_limit_too() -> None:
    told = refusal(endpoint("WNS"), {"body": "😀" * 66_000})
    assert "262144" in told


def test_a_text_longer_than_sms_can_be_is_rejected_and_never_cut() -> None:
    """1,600 characters by one page of SNS, 1,600 bytes by another: what lies between is SNS's to judge."""
    fits = "😀" * SMS_CHARACTERS_MAX
    assert published(PHONE, {"body": fits}).fields["Message"] == fits
    assert refusal(PHONE, {"body": fits + "x"}) == "text has 1601 characters, SNS takes 1600"


async def test_a_payload_without_json_form_is_rejected_without_being_quoted() -> None:
    """One row that cannot be rendered is that row's trouble."""
    async with stage() as on:
        publisher = sender(on)
        for value in (float("nan"), "\ud800"):
            told = publisher.prepare(row(endpoint("APNS"), {"data": {"secret": value}}))
            assert told == Rejected("payload has no JSON form")
        assert isinstance(publisher.prepare(row("nobody")), Rejected)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@effort(deadline=None)
@given(title=TEXT, body=TEXT, key=TEXT)
def test_whatever_is_said_arrives_as_it_was_said(title: str, body: str, key: str) -> None:
    payload = {"title": title, "body": body, "data": {f"k{key}": body}}
    assert block("APNS", payload)["aps"]["alert"] == {"title": title, "body": body}
    message = block("GCM", payload)["fcmV1Message"]["message"]
    assert message["notification"] == {"title": title, "body": body}
    assert message["data"] == {f"k{key}": body}
    assert published(PHONE, payload).fields["Message"] == f"{title}\n{body}"


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        publisher = sender(on)
        shown = repr(prepared(publisher, row(PHONE))) + repr(publisher) + repr(publisher._service)
        for private in ("AKIDEXAMPLE", "wJalr", PHONE, "Paket", "order"):
            assert private not in shown


# --- the table (providers: AWS SNS) ---

GONE_TEXT = "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"
NUMBER_TEXT = f"Invalid parameter: PhoneNumber Reason: {PHONE} is not valid to publish to"


@pytest.mark.parametrize(
    ("status", "code", "message", "outcome"),
    [
        (400, "InvalidParameter", "why", Rejected("InvalidParameter (400)")),
        (400, "ParameterValueInvalid", "why", Rejected("ParameterValueInvalid (400)")),
        (400, "ValidationException", "why", Rejected("ValidationException (400)")),
        (400, "ValidationError", "why", Rejected("ValidationError (400)")),
        (
            400,
            "EndpointDisabled",
            "Endpoint is disabled",
            Unregistered("EndpointDisabled (400)", guarded=True),
        ),
        (404, "NotFound", "Endpoint does not exist", Unregistered("NotFound (404)", guarded=True)),
        (400, "InvalidParameter", GONE_TEXT, Unregistered("InvalidParameter (400)", guarded=True)),
        (
            400,
            "InvalidParameter",
            NUMBER_TEXT,
            Unregistered("InvalidParameter (400)", guarded=True),
        ),
        (
            400,
            "PlatformApplicationDisabled",
            "why",
            CredentialFailure("PlatformApplicationDisabled (400)"),
        ),
        (
            403,
            "AuthorizationError",
            "User: arn is not authorized",
            CredentialFailure("AuthorizationError (403)"),
        ),
        (403, "InvalidSecurity", "why", CredentialFailure("InvalidSecurity (403)")),
        (400, "KMSDisabled", "why", CredentialFailure("KMSDisabled (400)")),
        (400, "KMSInvalidState", "why", CredentialFailure("KMSInvalidState (400)")),
        (400, "KMSNotFound", "why", CredentialFailure("KMSNotFound (400)")),
        (403, "KMSOptInRequired", "why", CredentialFailure("KMSOptInRequired (403)")),
        (400, "KMSAccessDenied", "why", CredentialFailure("KMSAccessDenied (400)")),
        (400, "KMSThrottling", "why", Throttled("KMSThrottling (400)")),
        (429, "Throttled", "Rate exceeded", Throttled("Throttled (429)")),
        (400, "Throttling", "Rate exceeded", Throttled("Throttling (400)")),
        (500, "InternalError", "why", Uncertain("InternalError (500)")),
        (500, "InternalFailure", "why", Uncertain("InternalFailure (500)")),
        (503, "ServiceUnavailable", "why", Uncertain("ServiceUnavailable (503)")),
        # what every service has
        (403, "ExpiredToken", "why", CredentialFailure("ExpiredToken (403)")),
        (403, "InvalidClientTokenId", "why", CredentialFailure("InvalidClientTokenId (403)")),
        (403, "SignatureDoesNotMatch", "why", CredentialFailure("SignatureDoesNotMatch (403)")),
        (
            403,
            "SignatureDoesNotMatch",
            "Signature expired: 20161010T120646Z is now earlier than 20161010T151154Z (20161010T152654Z - 15 min.)",
            CredentialFailure("SignatureDoesNotMatch (403): this machine's clock is wrong"),
        ),
        (
            400,
            "RequestExpired",
            "why",
            CredentialFailure("RequestExpired (400): this machine's clock is wrong"),
        ),
        (
            403,
            "MissingAuthenticationToken",
            "why",
            CredentialFailure("MissingAuthenticationToken (403)"),
        ),
        (400, "IncompleteSignature", "why", CredentialFailure("IncompleteSignature (400)")),
        (403, "OptInRequired", "why", CredentialFailure("OptInRequired (403)")),
        (400, "InvalidAction", "why", CredentialFailure("InvalidAction (400)")),
        (400, "MissingParameter", "why", Rejected("MissingParameter (400)")),
        (404, "MalformedQueryString", "why", Rejected("MalformedQueryString (404)")),
    ],
)
def test_what_a_refusal_means(status: int, code: str, message: str, outcome: Outcome) -> None:
    assert meaning_of(answered(status, xml_fault(code, message))) == outcome
    assert PHONE not in getattr(outcome, "reason", "")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (429, Throttled("answered 429")),
        (401, CredentialFailure("answered 401")),
        (404, CredentialFailure("answered 404, not as AWS does: is the endpoint right?")),
        (302, CredentialFailure("answered 302, not as AWS does: is the endpoint right?")),
        (400, Rejected("answered 400")),
        (413, Rejected("answered 413")),
        (500, Uncertain("answered 500")),
        (502, Uncertain("answered 502")),
        (504, Uncertain("answered 504")),
        (200, Uncertain("answered 200, but not as SNS does")),
    ],
)
def test_what_somebody_elses_answer_means(status: int, outcome: Outcome) -> None:
    """Above all a 404: it says nothing of the recipient."""
    assert meaning_of(answered(status, b"<html>404 NotFound</html>")) == outcome


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(phase=Phase.NOT_SENT, reason=Trouble.TLS, error="why"), NotSent("tls: why")),
        (
            Reply(phase=Phase.NOT_SENT, reason=Trouble.NO_KEYS, error="why"),
            CredentialFailure("why"),
        ),
        (
            Reply(phase=Phase.UNCERTAIN, reason=Trouble.TIMEOUT, error="why"),
            Uncertain("timeout: why"),
        ),
        (Reply(phase=Phase.ANSWERED, status=200, reason=Trouble.BODY_LOST), Delivered()),
    ],
)
def test_what_no_answer_and_a_cut_one_mean(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply) == outcome


# --- doubt ---


async def test_sns_offers_nothing_against_a_duplicate_and_cannot_be_asked() -> None:
    async with stage() as on:
        publisher = sender(on)
        assert publisher.facility == Facility()
        assert await publisher.ask(row(PHONE), timeout_seconds=1) is None


@pytest.mark.parametrize("recipient", [PHONE, endpoint("GCM")])
async def test_what_was_taken_and_whose_answer_was_lost_is_in_doubt(recipient: str) -> None:
    taken: list[bytes] = []

    async def takes_and_hangs_up(peer: Peer) -> None:
        taken.append((await peer.request()).body)
        peer.reset()

    async with stage() as on:
        server = await on.serve(takes_and_hangs_up)
        publisher, claimed = sender(on), row(recipient)
        reply = await publisher.send(claimed, prepared(publisher, claimed), timeout_seconds=10)
        assert isinstance(publisher.classify(claimed, reply), Uncertain)
        assert (len(taken), server.log.connections) == (1, 1), "and nothing repeats it"


async def test_a_server_that_never_answers_costs_one_deadline_and_one_connection() -> None:
    async def mute(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(mute)
        publisher, claimed = sender(on), row(PHONE)
        reply = await publisher.send(claimed, prepared(publisher, claimed), timeout_seconds=1.0)
        assert isinstance(publisher.classify(claimed, reply), Uncertain)
        assert server.log.connections == 1


# --- settings ---


@pytest.mark.parametrize(
    "settings",
    [
        {"sms_type": "transactional"},
        {"sms_sender_id": "much too long a name"},
        {"sms_origination_number": "Shop"},
        {"sms_max_price_usd": 0},
        {"account_id": "12345"},
        {"region": ""},
        {"topic": "x"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, SnsSettings)


def test_a_channel_needs_no_secret_where_the_function_has_a_role() -> None:
    assert fault_of("sns", {}, None) is None
    fault = fault_of("sns", {"sms": 1}, None)
    assert fault is not None
    assert fault.startswith("settings: there is no sms; known: ")
