"""The SES sender: the mail it makes of a notification, what it asks of SES, and what SES's answers mean."""

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Fence, OnUncertain
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
)
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared
from fencepost.senders.aws.tags import (
    ATTEMPT_TAG,
    FENCE_TAG,
    KEY_TAG,
    NOTIFICATION_TAG,
    tags_of,
)
from fencepost.senders.registry import fault_of
from fencepost.senders.ses import (
    BODY_BYTES_MAX,
    Ses,
    meaning_of,
    ses,
)
from fencepost.senders.ses_settings import SesSettings
from fencepost.senders.trouble import Trouble
from tests.core.rows import a_channel, a_claimed
from tests.senders.aws_receiver import SECRET, answered, current, json_fault, judge, says
from tests.senders.peers import Asked, Peer
from tests.senders.stage import HOST, Stage, never, stage

GOOD = (200, b'{"MessageId":"0100018c-4d"}', ())
FROM = "Shop <orders@shop.example>"
MAIL = a_claimed(
    7,
    3,
    recipient="ann@mail.example",
    payload={
        "title": "Dein Paket 😀",
        "body": "Es ist unterwegs.",
        "html": "<p>Es ist unterwegs.</p>",
    },
    idempotency_key=uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11"),
    attempts=2,
)


def channel(on: Stage, **settings: Any) -> Channel:
    endpoint = f"{on.scheme}://{HOST}"
    return a_channel(
        sender="ses",
        on_uncertain=OnUncertain.HOLD,
        settings={"from_address": FROM, "region": "eu-central-1", "endpoint": endpoint, **settings},
    )


def sender(on: Stage, **settings: Any) -> Ses:
    return ses(channel(on, **settings), SECRET, on.transport)


def prepared(sender: Ses, claimed: Any = MAIL) -> Prepared:
    made = sender.prepare(claimed)
    assert isinstance(made, Prepared), made
    return made


async def sent(on: Stage, claimed: Any = MAIL, **settings: Any) -> tuple[Outcome, Asked]:
    """One mail to the stage's last server."""
    mailer = sender(on, **settings)
    reply = await mailer.send(claimed, prepared(mailer, claimed), timeout_seconds=10)
    return mailer.classify(claimed, reply), on.servers[-1].log.requests[-1]


def mail(
    payload: Mapping[str, Any], on: Stage, recipient: str = "ann@mail.example", **settings: Any
) -> Any:
    return prepared(
        sender(on, **settings), replace(MAIL, payload=payload, recipient=recipient)
    ).request


def refusal(payload: Mapping[str, Any], on: Stage, recipient: str = "ann@mail.example") -> object:
    return sender(on).prepare(replace(MAIL, payload=payload, recipient=recipient))


# --- the request ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_ses_gets_a_signed_mail_for_one_recipient(protocol: str) -> None:
    async with stage() as on:
        await on.serve(says(GOOD), protocol=protocol)
        outcome, asked = await sent(on)
        assert outcome == Delivered("0100018c-4d")
        assert asked.headers[":method"] == "POST"
        assert asked.headers[":path"] == "/v2/email/outbound-emails"
        assert asked.headers["content-type"] == "application/json"
        judged = judge(asked)
        assert (judged.right, judged.service, judged.region) == (True, "ses", "eu-central-1")
        assert "content-type" in judged.signed
        assert current(asked)
        body = json.loads(asked.body)
        assert body["FromEmailAddress"] == FROM
        assert body["Destination"] == {"ToAddresses": ["ann@mail.example"]}
        assert body["Content"]["Simple"] == {
            "Subject": {"Data": "Dein Paket 😀", "Charset": "UTF-8"},
            "Body": {
                "Text": {"Data": "Es ist unterwegs.", "Charset": "UTF-8"},
                "Html": {"Data": "<p>Es ist unterwegs.</p>", "Charset": "UTF-8"},
            },
        }
        assert "😀".encode() in asked.body, "UTF-8, not escaped"


async def test_an_event_can_be_told_which_mail_it_is_about() -> None:
    """Each attempt's tags are its own; what is read, and its digest, are the same (G7)."""
    async with stage() as on:
        await on.serve(says(GOOD))
        _, first = await sent(on, tags={"stream": "orders"})
        again = replace(MAIL, fence=Fence(4), attempts=3)
        _, second = await sent(on, again, tags={"stream": "orders"})
        tags = [
            {tag["Name"]: tag["Value"] for tag in json.loads(asked.body)["EmailTags"]}
            for asked in (first, second)
        ]
        key = str(MAIL.idempotency_key)
        own = {NOTIFICATION_TAG: "7", FENCE_TAG: "3", ATTEMPT_TAG: "2", KEY_TAG: key}
        assert tags[0] == {"stream": "orders", **own}
        assert tags[1] == {**tags[0], FENCE_TAG: "4", ATTEMPT_TAG: "3"}
        mailer = sender(on, tags={"stream": "orders"})
        assert prepared(mailer).digest == prepared(mailer, again).digest
        assert len(prepared(mailer).digest) == 16


def test_tags_are_such_as_ses_takes() -> None:
    for name, value in tags_of(MAIL).items():
        for text in (name, value):
            assert text.isascii()
            assert text.replace("-", "").replace("_", "").isalnum()


async def test_the_digest_is_over_what_is_read_alone() -> None:
    async with stage() as on:
        plain = prepared(sender(on)).digest
        assert prepared(sender(on, configuration_set="other", tags={"a": "b"})).digest == plain
        assert prepared(sender(on, from_address="else@shop.example")).digest != plain
        other = replace(MAIL, payload={**MAIL.payload, "title": "t"})
        assert prepared(sender(on), other).digest != plain


async def test_what_the_channel_says_of_every_mail_is_in_each() -> None:
    async with stage() as on:
        made = mail(
            {"body": "b"},
            on,
            from_address="Bücher & Söhne <orders@shop.example>",
            reply_to=["Hilfe <help@shop.example>"],
            from_identity_arn="arn:aws:ses:eu-central-1:123456789012:identity/shop.example",
            configuration_set="events",
            contact_list="customers",
            contact_topic="orders",
            headers={
                "List-Unsubscribe": "<https://shop.example/u>",
                "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            },
        )
        assert (
            made["FromEmailAddress"] == "=?utf-8?b?QsO8Y2hlciAmIFPDtmhuZQ==?= <orders@shop.example>"
        )
        assert made["ReplyToAddresses"] == ["Hilfe <help@shop.example>"]
        assert made["FromEmailAddressIdentityArn"].endswith(":identity/shop.example")
        assert made["ConfigurationSetName"] == "events"
        assert made["ListManagementOptions"] == {
            "ContactListName": "customers",
            "TopicName": "orders",
        }
        assert made["Content"]["Simple"]["Headers"] == [
            {"Name": "List-Unsubscribe", "Value": "<https://shop.example/u>"},
            {"Name": "List-Unsubscribe-Post", "Value": "List-Unsubscribe=One-Click"},
        ]


async def test_what_is_not_said_is_not_asked_for() -> None:
    async with stage() as on:
        made = mail({"title": "t", "body": "b"}, on)
        assert set(made) == {"FromEmailAddress", "Destination", "Content"}
        assert made["Content"] == {
            "Simple": {
                "Subject": {"Data": "t", "Charset": "UTF-8"},
                "Body": {"Text": {"Data": "b", "Charset": "UTF-8"}},
            }
        }


async def test_a_headline_is_one_line() -> None:
    async with stage() as on:
        made = mail({"title": "a\r\nBcc: eve@mail.example\nb", "body": "b"}, on)
        assert made["Content"]["Simple"]["Subject"]["Data"] == "a Bcc: eve@mail.example b"


# --- raw ---


async def test_the_raw_block_goes_over_ours_object_by_object() -> None:
    async with stage() as on:
        headers = [{"Name": "List-Unsubscribe", "Value": "<https://shop.example/u/7>"}]
        raw = {"ses": {"ConfigurationSetName": "mine", "Content": {"Simple": {"Headers": headers}}}}
        made = mail({"title": "t", "body": "b", "raw": raw}, on, configuration_set="events")
        assert made["ConfigurationSetName"] == "mine"
        assert made["Content"]["Simple"]["Headers"] == headers
        assert made["Content"]["Simple"]["Subject"]["Data"] == "t"


async def test_a_mime_mail_of_ones_own_takes_the_place_of_ours() -> None:
    async with stage() as on:
        await on.serve(says(GOOD))
        mime = base64.b64encode(b"From: a\r\nSubject: s\r\n\r\nhello").decode()
        raw = {
            "ses": {"Content": {"Raw": {"Data": mime}}, "EmailTags": [{"Name": "a", "Value": "b"}]}
        }
        outcome, asked = await sent(on, replace(MAIL, payload={"raw": raw}))
        assert isinstance(outcome, Delivered)
        body = json.loads(asked.body)
        assert body["Content"] == {"Raw": {"Data": mime}}
        assert body["Destination"] == {"ToAddresses": ["ann@mail.example"]}
        assert {"Name": "a", "Value": "b"} in body["EmailTags"]
        assert len(body["EmailTags"]) == 5


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            {"Destination": {"CcAddresses": ["eve@mail.example"]}},
            "raw.ses names a Destination: the notification's recipient is the only one",
        ),
        ({"Content": "text"}, None),
        ({"Content": {"Simple": "text"}}, None),
        ({"Content": {"Simple": {"Body": 5}}}, None),
        ({"EmailTags": 5}, None),
        ({"EmailTags": {"a": "b"}}, None),
    ],
)
async def test_a_raw_block_that_nothing_can_be_built_on_is_rejected(
    raw: Any, reason: str | None
) -> None:
    """Before it is sent: a bug here would leave doubt behind."""
    async with stage() as on:
        told = refusal({"body": "b", "raw": {"ses": raw}}, on)
        assert told == Rejected(
            reason or "raw.ses is no body of SendEmail: Content holds objects, EmailTags is a list"
        )


# --- what is rejected before it is sent ---


@pytest.mark.parametrize(
    "recipient",
    [
        "",
        "ann",
        "@mail.example",
        "ann@",
        "ann@mail.example, eve@mail.example",
        "ann@mail.example eve@mail.example",
        "Ann <ann@mail.example>",
        "ann@mail.example\r\nBcc: eve@mail.example",
        "a@b@mail.example",
        "ann@mail..example",
        "änn@mail.example",
        "https://mail.example/",
    ],
)
async def test_only_one_plain_address_is_a_recipient(recipient: str) -> None:
    """Neither a second recipient nor a header gets in through it; and it is not quoted (G10)."""
    async with stage() as on:
        told = refusal({"body": "b"}, on, recipient)
        assert isinstance(told, Rejected)
        assert told.reason.startswith("recipient")
        assert "ann" not in told.reason


async def test_a_domain_goes_out_as_dns_knows_it() -> None:
    async with stage() as on:
        made = mail({"body": "b"}, on, "ann@bücher.example")
        assert made["Destination"] == {"ToAddresses": ["ann@xn--bcher-kva.example"]}


@pytest.mark.parametrize(
    "payload", [{}, {"title": "t"}, {"title": "t", "body": ""}, {"url": "https://shop.example/"}]
)
async def test_a_mail_with_nothing_to_read_is_rejected(payload: Any) -> None:
    async with stage() as on:
        assert refusal(payload, on) == Rejected(
            "nothing to read: neither body nor html nor a raw block with Content"
        )


async def test_the_limit_is_of_encoded_bytes() -> None:
    """A limit counted in characters lets through what the provider drops: four bytes are four."""
    async with stage() as on:
        mailer = sender(on)
        empty = mailer.prepare(replace(MAIL, payload={"body": "x"}))
        assert isinstance(empty, Prepared)
        over = "😀" * (BODY_BYTES_MAX // 4)
        told = mailer.prepare(replace(MAIL, payload={"body": over}))
        assert isinstance(told, Rejected)
        size = len(over.encode())
        assert size > BODY_BYTES_MAX - 4 > len(over), "it counts bytes, not characters"
        assert str(BODY_BYTES_MAX) in told.reason
        assert any(part.isdigit() and int(part) > size for part in told.reason.split())
        fits = "😀" * (BODY_BYTES_MAX // 4 - 200)
        assert isinstance(mailer.prepare(replace(MAIL, payload={"body": fits})), Prepared)


@pytest.mark.parametrize("value", [float("nan"), "\ud800"])
async def test_a_payload_without_json_form_is_rejected_without_being_quoted(value: Any) -> None:
    """One row that cannot be rendered is that row's trouble."""
    async with stage() as on:
        told = refusal(
            {
                "body": "b",
                "raw": {
                    "ses": {
                        "FeedbackForwardingEmailAddress": "x",
                        "Content": {"Simple": {"Headers": [value]}},
                    }
                },
            },
            on,
        )
        assert told == Rejected("payload has no JSON form")


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        mailer = sender(on)
        shown = repr(mailer) + repr(mailer._service) + repr(mailer._service.place)
        for private in ("AKIDEXAMPLE", "wJalr", "ann@", "Paket"):
            assert private not in shown


# --- the table (providers: AWS SES v2) ---

NOT_VERIFIED = (
    "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: "
    "ann@mail.example"
)


@pytest.mark.parametrize(
    ("status", "code", "message", "outcome"),
    [
        (
            429,
            "TooManyRequestsException",
            "Maximum sending rate exceeded.",
            Throttled("TooManyRequestsException (429)"),
        ),
        (
            400,
            "ThrottlingException",
            "Maximum sending rate exceeded.",
            Throttled("ThrottlingException (400)"),
        ),
        (400, "Throttling", "Rate exceeded", Throttled("Throttling (400)")),
        (
            429,
            "TooManyRequestsException",
            "Daily message quota exceeded.",
            Throttled("TooManyRequestsException (429): the daily quota", 600.0),
        ),
        (
            400,
            "ThrottlingException",
            "Daily message quota exceeded",
            Throttled("ThrottlingException (400): the daily quota", 600.0),
        ),
        (400, "LimitExceededException", "why", Throttled("LimitExceededException (400)", 600.0)),
        (
            400,
            "AccountSuspendedException",
            "why",
            CredentialFailure("AccountSuspendedException (400)"),
        ),
        (400, "SendingPausedException", "why", CredentialFailure("SendingPausedException (400)")),
        (
            400,
            "MailFromDomainNotVerifiedException",
            "why",
            CredentialFailure("MailFromDomainNotVerifiedException (400)"),
        ),
        (
            404,
            "NotFoundException",
            "Configuration set <x> does not exist.",
            CredentialFailure("NotFoundException (404)"),
        ),
        (400, "MessageRejected", "Virus found", Rejected("MessageRejected (400)")),
        (
            400,
            "MessageRejected",
            NOT_VERIFIED,
            CredentialFailure(
                "MessageRejected (400): an address is not verified, or the account is in the sandbox"
            ),
        ),
        (400, "BadRequestException", "why", Rejected("BadRequestException (400)")),
        # what every service has
        (
            403,
            "AccessDeniedException",
            "User: arn is not authorized",
            CredentialFailure("AccessDeniedException (403)"),
        ),
        (403, "ExpiredTokenException", "why", CredentialFailure("ExpiredTokenException (403)")),
        (
            403,
            "UnrecognizedClientException",
            "why",
            CredentialFailure("UnrecognizedClientException (403)"),
        ),
        (403, "InvalidClientTokenId", "why", CredentialFailure("InvalidClientTokenId (403)")),
        (
            403,
            "InvalidSignatureException",
            "why",
            CredentialFailure("InvalidSignatureException (403)"),
        ),
        (403, "SignatureDoesNotMatch", "why", CredentialFailure("SignatureDoesNotMatch (403)")),
        (
            403,
            "SignatureDoesNotMatch",
            "Signature expired: 20261130T120646Z is now earlier than 20261130T151154Z",
            CredentialFailure("SignatureDoesNotMatch (403): this machine's clock is wrong"),
        ),
        (
            403,
            "InvalidSignatureException",
            "Signature not yet current: 20261130T092200Z is still later",
            CredentialFailure("InvalidSignatureException (403): this machine's clock is wrong"),
        ),
        (
            403,
            "RequestTimeTooSkewed",
            "why",
            CredentialFailure("RequestTimeTooSkewed (403): this machine's clock is wrong"),
        ),
        (
            400,
            "RequestExpired",
            "why",
            CredentialFailure("RequestExpired (400): this machine's clock is wrong"),
        ),
        (
            403,
            "MissingAuthenticationTokenException",
            "why",
            CredentialFailure("MissingAuthenticationTokenException (403)"),
        ),
        (400, "IncompleteSignature", "why", CredentialFailure("IncompleteSignature (400)")),
        (403, "OptInRequired", "why", CredentialFailure("OptInRequired (403)")),
        (401, "NotAuthorized", "why", CredentialFailure("NotAuthorized (401)")),
        (
            404,
            "UnknownOperationException",
            "why",
            CredentialFailure("UnknownOperationException (404)"),
        ),
        (400, "SerializationException", "why", Rejected("SerializationException (400)")),
        (400, "ValidationException", "why", Rejected("ValidationException (400)")),
        (
            413,
            "RequestEntityTooLargeException",
            "why",
            Rejected("RequestEntityTooLargeException (413)"),
        ),
        (400, "RequestAbortedException", "why", Uncertain("RequestAbortedException (400)")),
        (500, "InternalFailure", "why", Uncertain("InternalFailure (500)")),
        (503, "ServiceUnavailable", "why", Uncertain("ServiceUnavailable (503)")),
    ],
)
def test_what_a_refusal_means(status: int, code: str, message: str, outcome: Outcome) -> None:
    body, headers = json_fault(code, message)
    assert meaning_of(answered(status, body, headers)) == outcome
    in_body = json.dumps({"__type": f"com.amazonaws.sesv2#{code}", "message": message}).encode()
    assert meaning_of(answered(status, in_body)) == outcome, "older front ends say it in the body"
    assert "mail.example" not in getattr(outcome, "reason", "")


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (429, {}, Throttled("answered 429")),
        (429, {"retry-after": "7"}, Throttled("answered 429", 7.0)),
        (403, {}, CredentialFailure("answered 403")),
        (500, {}, Uncertain("answered 500")),
        (502, {}, Uncertain("answered 502")),
        (503, {"retry-after": "30"}, Uncertain("answered 503", 30.0)),
        (504, {}, Uncertain("answered 504")),
        (408, {}, Uncertain("answered 408")),
        (400, {}, Rejected("answered 400")),
        (413, {}, Rejected("answered 413")),
        (404, {}, CredentialFailure("answered 404, not as AWS does: is the endpoint right?")),
        (301, {}, CredentialFailure("answered 301, not as AWS does: is the endpoint right?")),
        (200, {}, Uncertain("answered 200, but not as SES does")),
    ],
)
def test_what_somebody_elses_answer_means(
    status: int, headers: dict[str, str], outcome: Outcome
) -> None:
    """A proxy's page has no code of AWS's. Nothing is delivered because a web server says 200."""
    assert meaning_of(answered(status, b"<html>ann@mail.example</html>", headers)) == outcome


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("Wed, 21 Oct 2037 07:30:00 GMT", 120.0),
        ("-5", None),
        ("1.5", None),
        ("9999999999", None),
        ("", None),
    ],
)
def test_a_wait_is_heard_where_it_makes_sense(value: str, seconds: float | None) -> None:
    body, headers = json_fault("TooManyRequestsException", "Maximum sending rate exceeded.")
    told = {**dict(headers), "retry-after": value, "date": "Wed, 21 Oct 2037 07:28:00 GMT"}
    why = "TooManyRequestsException (429)"
    assert meaning_of(answered(429, body, told)) == Throttled(why, seconds)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(phase=Phase.NOT_SENT, reason=Trouble.CONNECT, error="why"), NotSent("connect: why")),
        (
            Reply(phase=Phase.NOT_SENT, reason=Trouble.NO_KEYS, error="why"),
            CredentialFailure("why"),
        ),
        (
            Reply(phase=Phase.UNCERTAIN, reason=Trouble.TIMEOUT, error="why"),
            Uncertain("timeout: why"),
        ),
        (Reply(phase=Phase.ANSWERED, status=200, reason=Trouble.BODY_LOST), Delivered()),
        (Reply(phase=Phase.ANSWERED, status=200, body=b'{"MessageId":"m"}'), Delivered("m")),
        (Reply(phase=Phase.ANSWERED, status=201, body=b'{"MessageId":"m"}'), Delivered("m")),
    ],
)
def test_what_no_answer_and_a_cut_one_mean(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply) == outcome


# --- doubt ---


async def test_ses_drops_no_repeat_and_tells_by_itself_only_through_a_configuration_set() -> None:
    async with stage() as on:
        mailer = sender(on)
        assert mailer.facility == Facility()
        assert mailer.facility.nothing
        told = sender(on, configuration_set="events", events_within_seconds=60.0)
        assert told.facility == Facility(evidence_within_seconds=60.0)
        assert await mailer.ask(MAIL, timeout_seconds=1) is None


def test_reconcile_is_refused_where_no_event_will_ever_tell() -> None:
    plain = {"from_address": FROM}
    assert "reconcile cannot work" in (fault_of("ses", plain, None, "reconcile") or "")
    assert fault_of("ses", {**plain, "configuration_set": "events"}, None, "reconcile") is None
    assert "reconcile cannot work" in (fault_of("sns", {}, None, "reconcile") or "")


async def test_a_mail_that_was_taken_and_whose_answer_was_lost_is_in_doubt() -> None:
    """One request, one mail: no SDK repeats it behind our back (botocore's default would, after a read timeout)."""
    taken: list[bytes] = []

    async def takes_and_hangs_up(peer: Peer) -> None:
        taken.append((await peer.request()).body)
        peer.reset()

    async with stage() as on:
        server = await on.serve(takes_and_hangs_up)
        mailer = sender(on)
        reply = await mailer.send(MAIL, prepared(mailer), timeout_seconds=10)
        assert isinstance(mailer.classify(MAIL, reply), Uncertain)
        assert reply.phase is Phase.UNCERTAIN
        assert (len(taken), server.log.connections) == (1, 1)


async def test_a_server_that_never_answers_costs_one_deadline_and_one_connection() -> None:
    """A read timeout multiplied by an SDK's retries is what others have seen."""

    async def mute(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(mute)
        mailer = sender(on)
        reply = await mailer.send(MAIL, prepared(mailer), timeout_seconds=0.2)
        assert isinstance(mailer.classify(MAIL, reply), Uncertain)
        assert server.log.connections == 1


async def test_a_server_that_cannot_be_reached_leaves_no_doubt() -> None:
    async with stage() as on:
        server = await on.serve(says(GOOD))
        await server.close()
        mailer = sender(on)
        reply = await mailer.send(MAIL, prepared(mailer), timeout_seconds=10)
        assert isinstance(mailer.classify(MAIL, reply), NotSent)


# --- settings ---


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"from_address": ""},
        {"from_address": "Shop"},
        {"from_address": "a@b.example\nBcc: c@d.example"},
        {"from_address": "ä@b.example"},
        {"from_address": FROM, "reply_to": ["nobody"]},
        {"from_address": FROM, "headers": {"A:": "b"}},
        {"from_address": FROM, "headers": {"A": "b\nc"}},
        {"from_address": FROM, "headers": {"A": "ü"}},
        {"from_address": FROM, "headers": {f"A{n}": "b" for n in range(16)}},
        {"from_address": FROM, "tags": {"a b": "c"}},
        {"from_address": FROM, "tags": {NOTIFICATION_TAG: "1"}},
        {"from_address": FROM, "contact_topic": "orders"},
        {"from_address": FROM, "events_within_seconds": 0},
        {"from_address": FROM, "configuration-set": "x"},
        {"from_address": FROM, "secret_access_key": "x"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, SesSettings)


def test_a_channel_needs_no_secret_where_the_function_has_a_role() -> None:
    assert fault_of("ses", {"from_address": FROM}, None) is None
    fault = fault_of("ses", {"from": FROM}, None)
    assert fault is not None
    assert fault.startswith("settings: there is no from; known: from_address, ")
