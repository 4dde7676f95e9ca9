"""The Twilio sender: what it sends, how it looks up what it sent, and what Twilio's answers mean."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.channel import Facility
from fencepost.core.notification import Claimed, Fence, Held, NotificationId
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared
from fencepost.senders.twilio import Twilio, twilio
from fencepost.senders.twilio_answer import code_in, meaning_of
from fencepost.senders.twilio_callback import Named, callback_url, meaning_of_callback, named_in
from fencepost.senders.twilio_list import UNREADABLE
from fencepost.senders.twilio_secret import auth_tokens
from fencepost.senders.twilio_settings import TwilioSettings
from fencepost.senders.twilio_status import meaning_of_status
from tests.senders.claimed import KEY, claimed, in_doubt
from tests.senders.stage import HOST, Stage, stage
from tests.senders.test_registry import CHANNEL
from tests.senders.twilio_server import ACCOUNT, SECRET, TwilioServer

NOW = 1_700_000_000.0
TO = "+14155550100"
TEXT = "Your order has left\nIt comes on Tuesday."
ROW = claimed(recipient=TO)
DOUBTFUL = in_doubt(since_seconds=300.0, recipient=TO)
KNOWN = {"account_sid": ACCOUNT, "from": "+14155550123", "endpoint": f"https://{HOST}"}


def sender(on: Stage, *, secret: Any = SECRET, **settings: Any) -> Twilio:
    read = msgspec.convert({**KNOWN, **settings}, TwilioSettings)
    return Twilio(on.transport, read, secret, channel="sms", now=lambda: NOW)


def prepared(of: Twilio, row: Claimed = ROW) -> Prepared:
    message = of.prepare(row)
    assert isinstance(message, Prepared)
    return message


async def sent(of: Twilio, row: Claimed = ROW) -> Outcome:
    return of.classify(row, await of.send(row, prepared(of, row), timeout_seconds=10))


# --- over a real socket ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_it_is_sent_as_a_form(protocol: str) -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        await on.serve(server, protocol=protocol)
        assert await sent(sender(on)) == Delivered("SM" + "0" * 32)
        assert server.forms == [{"To": [TO], "From": ["+14155550123"], "Body": [TEXT]}]


async def test_the_time_that_is_left_and_the_attempt_are_told_and_change_no_digest() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        await on.serve(server)
        told = sender(on, status_callback="https://hooks.example/twilio?tenant=7")
        first = replace(ROW, expires_in_seconds=90.9)
        again = replace(ROW, fence=Fence(4), expires_in_seconds=100_000.0)
        for row in (first, again, replace(ROW, expires_in_seconds=0.2)):
            await sent(told, row)
        assert [form["ValidityPeriod"] for form in server.forms] == [["90"], ["36000"], ["1"]]
        assert [form["StatusCallback"] for form in server.forms[:2]] == [
            [
                "https://hooks.example/twilio/sms?tenant=7&fencepost_notification=7"
                f"&fencepost_fence={n}&fencepost_key={KEY}"
            ]
            for n in (3, 4)
        ]
        assert prepared(told, first).digest == prepared(told, again).digest


async def test_a_refused_key_is_the_channels_fault() -> None:
    async with stage() as on:
        await on.serve(TwilioServer(now=NOW))
        refused = await sent(sender(on, secret="SK" + "2" * 32 + ":other"))
        assert refused == CredentialFailure("answered 401 20003")


async def test_what_was_stored_and_never_answered_is_found_and_not_repeated() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW - 300, cuts=1)
        listening = await on.serve(server)
        lost = sender(on)
        assert isinstance(await sent(lost), Uncertain)
        assert len(listening.log.requests) == 1
        assert await lost.ask(DOUBTFUL, timeout_seconds=10) == Delivered("SM" + "0" * 32)
        assert len(server.messages) == 1


async def test_where_nothing_went_to_the_number_since_then_it_was_not_sent() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        server.store(TO, TEXT, at=NOW - 86_400)  # an older one, the same words
        server.store(TO, TEXT, direction="inbound")
        server.store("+14155550999", TEXT)
        await on.serve(server)
        assert await sender(on).ask(DOUBTFUL, timeout_seconds=10) == NotSent(
            "Twilio has no message to this number since then"
        )


@pytest.mark.parametrize(
    "others",
    [
        [TEXT, TEXT],  # which is ours?
        [f"PS: {TEXT}"],
        ["Your order has left"],  # ours, its text changed by Twilio? or another
        [""],  # its text was redacted
    ],
)
async def test_what_cannot_be_told_apart_is_not_decided(others: list[str]) -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        for text in others:
            server.store(TO, text)
        await on.serve(server)
        assert isinstance(await sender(on).ask(DOUBTFUL, timeout_seconds=10), Uncertain)


async def test_one_among_others_is_found_by_its_text_even_on_a_trial_account() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        server.store(TO, f"Sent from your Twilio trial account - {TEXT}", status="delivered")
        for number in range(25):
            server.store(TO, f"another {number}")
        await on.serve(server)
        found = await sender(on).ask(DOUBTFUL, timeout_seconds=10)
        assert found == Delivered("SM" + "0" * 32)
        assert len(server.asked) == 2


async def test_a_list_not_read_to_its_end_proves_nothing() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW - 86_400)
        for number in range(41):
            server.store(TO, str(number))
        await on.serve(server)
        assert isinstance(
            await sender(on, list_pages=2).ask(DOUBTFUL, timeout_seconds=10), Uncertain
        )
        assert isinstance(await sender(on).ask(DOUBTFUL, timeout_seconds=10), NotSent)


async def test_so_shortly_after_the_attempt_absence_proves_nothing() -> None:
    async with stage() as on:
        await on.serve(TwilioServer(now=NOW))
        fresh = in_doubt(since_seconds=119.0, recipient=TO)
        again = in_doubt(since_seconds=900.0, doubt_age_seconds=119.0, recipient=TO)
        assert isinstance(await sender(on).ask(fresh, timeout_seconds=10), Uncertain)
        assert isinstance(await sender(on).ask(again, timeout_seconds=10), Uncertain)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"status": "undelivered", "error_code": 30005}, Unregistered("undelivered 30005")),
        ({"status": "failed", "error_code": 30007}, Rejected("failed 30007")),
        ({"status": "undelivered", "error_code": 30003}, Failed("undelivered 30003")),
        ({"status": "something new"}, None),
        ({"date_created": "yesterday"}, UNREADABLE),
    ],
)
async def test_what_became_of_it_is_what_the_list_says(
    changes: dict[str, Any], outcome: Outcome | None
) -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        server.store(TO, TEXT, **changes)
        await on.serve(server)
        assert await sender(on).ask(DOUBTFUL, timeout_seconds=10) == outcome


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (429, b'{"code":20429}', Throttled("answered 429 20429")),
        (401, b'{"code":20003}', CredentialFailure("answered 401 20003")),
        (
            400,
            b'{"code":21211}',
            Uncertain("the list of messages cannot be had: answered 400 21211"),
        ),  # says nothing of the message
        (500, b"", Uncertain("the list of messages cannot be had: answered 500")),
        (200, b'{"mess', UNREADABLE),
        (200, b'{"messages":["x"]}', UNREADABLE),
    ],
)
async def test_a_list_that_is_refused_proves_nothing(
    status: int, body: bytes, outcome: Outcome | None
) -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        server.refuses = (status, body)
        await on.serve(server)
        assert await sender(on).ask(DOUBTFUL, timeout_seconds=10) == outcome


async def test_a_number_twilio_would_write_in_another_way_is_not_asked_about() -> None:
    async with stage() as on:
        listening = await on.serve(TwilioServer(now=NOW))
        for recipient in ("+1 415 555 0100", "4155550100", "client:x"):
            row = replace(DOUBTFUL, recipient=recipient)
            assert isinstance(await sender(on).ask(row, timeout_seconds=10), Uncertain)
        assert listening.log.connections == 0


# --- the message ---


@pytest.mark.parametrize(
    "recipient",
    [
        "0171 234",
        "4155550100",
        "+0155550100",
        "+1 415 555 0100",
        "+1415555010012345",
        "+\uff11\uff12\uff13\uff14",
        "",
    ],
)
async def test_what_is_no_number_is_rejected_and_never_sent(recipient: str) -> None:
    async with stage() as on:
        row = replace(ROW, recipient=recipient)
        assert sender(on).prepare(row) == Rejected(
            "the recipient is no phone number as E.164 writes it"
        )


@pytest.mark.parametrize("recipient", ["+2904", "+14155550100", "whatsapp:+14155550100"])
async def test_numbers_and_addresses_of_other_networks_are_sent_to(recipient: str) -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        await on.serve(server)
        assert isinstance(await sent(sender(on), replace(ROW, recipient=recipient)), Delivered)


async def test_a_raw_block_is_laid_over_it() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        await on.serve(server)
        raw = {"Body": "other 😀", "MediaUrl": ["https://a/1", "https://a/2"], "SendAsMms": True}
        service = "MG" + "3" * 32
        by_service = sender(on, **{"from": None}, messaging_service_sid=service)
        await sent(by_service, replace(ROW, payload={"body": "x", "raw": {"twilio": raw}}))
        assert server.forms == [
            {
                "To": [TO],
                "MessagingServiceSid": [service],
                "Body": ["other 😀"],
                "MediaUrl": ["https://a/1", "https://a/2"],
                "SendAsMms": ["true"],
            }
        ]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"badge": 1}, "nothing to say: no title, body, url or raw block with Body"),
        ({"body": "x" * 1601}, "text has 1601 characters, Twilio takes 1600"),
        ({"body": "\ud800"}, "payload has no UTF-8 form"),
        ({"raw": {"twilio": {"To": "+1999", "Body": "x"}}}, "raw.twilio may not say To"),
        ({"raw": {"twilio": {"StatusCallback": "x"}}}, "raw.twilio may not say StatusCallback"),
        ({"raw": {"twilio": {"Body": {"x": 1}}}}, "raw.twilio holds what a form cannot"),
    ],
)
async def test_what_twilio_would_refuse_is_rejected_before(
    payload: dict[str, Any], reason: str
) -> None:
    async with stage() as on:
        assert sender(on).prepare(replace(ROW, payload=payload)) == Rejected(reason)


async def test_text_is_never_cut() -> None:
    async with stage() as on:
        server = TwilioServer(now=NOW)
        await on.serve(server)
        await sent(sender(on), replace(ROW, payload={"body": "é" * 1600}))
        assert server.forms[0]["Body"] == ["é" * 1600]


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        await on.serve(TwilioServer(now=NOW, cuts=1))
        one = sender(on)
        shown = repr(one) + repr(await one.send(ROW, prepared(one), timeout_seconds=10))
        for secret in ("verysecret", "4155550100", "Tuesday"):
            assert secret not in shown


# --- the table (providers: Twilio SMS) ---


def answered(status: int, code: int | None = None) -> Reply:
    body = {} if code is None else {"code": code, "message": "private", "status": status}
    return Reply(phase=Phase.ANSWERED, status=status, body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(phase=Phase.ANSWERED, status=201, body=b'{"sid":"SM1"}'), Delivered("SM1")),
        (Reply(phase=Phase.ANSWERED, status=201, body=b'{"si', reason="body_lost"), Delivered()),
        (
            Reply(phase=Phase.ANSWERED, status=200, body=b"<html>"),
            Uncertain("answered 200, but not as Twilio does"),
        ),
        (answered(429, 20429), Throttled("answered 429 20429")),
        (answered(429), Throttled("answered 429")),
        (answered(400, 21211), Unregistered("answered 400 21211")),
        (answered(400, 21614), Unregistered("answered 400 21614")),
        (answered(400, 21610), Unregistered("answered 400 21610")),
        (answered(400, 21635), Unregistered("answered 400 21635")),
        (answered(400, 21730), Failed("answered 400 21730")),
        (answered(503, 21730), Uncertain("answered 503 21730")),
        (answered(401, 20003), CredentialFailure("answered 401 20003")),
        (answered(403), CredentialFailure("answered 403")),
        (answered(400, 20003), CredentialFailure("answered 400 20003")),
        (answered(400, 21606), CredentialFailure("answered 400 21606")),
        *(
            (answered(400, code), CredentialFailure(f"answered 400 {code}"))
            for code in (21601, 21659, 21660, 21661)
        ),
        (answered(404, 20404), CredentialFailure("answered 404 20404")),
        (answered(400, 21602), Rejected("answered 400 21602")),
        (answered(400, 21617), Rejected("answered 400 21617")),
        (answered(400, 21408), Rejected("answered 400 21408")),
        (answered(422), Rejected("answered 422")),
        (answered(500, 20500), Uncertain("answered 500 20500")),
        (answered(503), Uncertain("answered 503")),
        (answered(302), Failed("answered 302")),
        (Reply(phase=Phase.NOT_SENT, reason="connect"), NotSent("connect")),
        (Reply(phase=Phase.UNCERTAIN, reason="timeout"), Uncertain("timeout")),
    ],
)
def test_what_an_answer_means(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply) == outcome


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        ("accepted", None, Delivered("SM1")),
        ("queued", None, Delivered("SM1")),
        ("sent", None, Delivered("SM1")),
        ("delivered", None, Delivered("SM1")),
        ("canceled", None, Rejected("canceled at Twilio")),
        ("undelivered", 30003, Failed("undelivered 30003")),
        ("undelivered", 30004, Rejected("undelivered 30004")),
        ("undelivered", 30005, Unregistered("undelivered 30005")),
        ("undelivered", 30006, Unregistered("undelivered 30006", guarded=True)),
        ("failed", 21635, Unregistered("failed 21635")),
        ("undelivered", 30007, Rejected("undelivered 30007")),
        ("undelivered", 30008, Uncertain("undelivered 30008")),
        ("failed", 30036, Rejected("failed 30036")),
        ("failed", 21610, Unregistered("failed 21610")),
        ("failed", None, Failed("failed")),
        ("", None, None),
    ],
)
def test_what_a_status_means(status: str, code: int | None, outcome: Outcome | None) -> None:
    assert meaning_of_status(status, code, "SM1") == outcome


# --- callbacks ---


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://hooks.example", "https://hooks.example/sms?"),
        ("https://hooks.example/", "https://hooks.example/sms?"),
        ("https://hooks.example/twilio?tenant=7", "https://hooks.example/twilio/sms?tenant=7&"),
    ],
)
@pytest.mark.parametrize("fragment", ["", "#rc=5&rp=all"])
def test_a_callback_names_its_channel_and_attempt(base: str, url: str, fragment: str) -> None:
    made = callback_url(base + fragment, "sms", ROW)
    named = f"fencepost_notification=7&fencepost_fence=3&fencepost_key={KEY}"
    assert made == f"{url}{named}{fragment}"
    assert named_in(made) == Named("sms", Held(NotificationId(7), Fence(3)), KEY)


@pytest.mark.parametrize(
    "target",
    [
        "sms",
        "sms?fencepost_notification=7",
        f"sms?fencepost_notification=7&fencepost_fence=&fencepost_key={KEY}",
        f"sms?fencepost_notification=7&fencepost_notification=8&fencepost_fence=3&fencepost_key={KEY}",
        f"sms?fencepost_notification=-7&fencepost_fence=3&fencepost_key={KEY}",
        f"sms?fencepost_notification=²&fencepost_fence=3&fencepost_key={KEY}",
        f"sms?fencepost_notification={'9' * 19}&fencepost_fence=3&fencepost_key={KEY}",
        "sms?fencepost_notification=7&fencepost_fence=3",
        "sms?fencepost_notification=7&fencepost_fence=3&fencepost_key=9f0c",
        f"sms?fencepost_notification=7&fencepost_fence=3&fencepost_key={KEY}&fencepost_key={KEY}",
        f"?fencepost_notification=7&fencepost_fence=3&fencepost_key={KEY}",
        "sms?" + "&".join(["fencepost_notification=7"] * 200),
    ],
)
def test_a_callback_that_names_none_is_none(target: str) -> None:
    assert named_in(f"https://hooks.example/{target}") is None


def test_a_callback_says_what_became_of_it() -> None:
    form = {"MessageSid": "SM1", "MessageStatus": "undelivered", "ErrorCode": "30005"}
    assert meaning_of_callback(form) == Unregistered("undelivered 30005")
    assert meaning_of_callback({"SmsSid": "SM1", "SmsStatus": "sent"}) == Delivered("SM1")
    assert meaning_of_callback({}) is None


@pytest.mark.parametrize(
    ("said", "code"),
    [(30003, 30003), ("30003", 30003), ("", None), (True, None), ("-1", None), (None, None)],
)
def test_an_error_code_is_a_number(said: object, code: int | None) -> None:
    assert code_in(said) == code


# --- the channel ---


async def test_it_can_be_asked_and_drops_no_repeat() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility(can_be_asked=True)


@pytest.mark.parametrize("secret", [None, "", "hunter2", "SK123:x", f"{'AC' + 'g' * 32}:x"])
async def test_a_secret_that_is_no_pair_is_refused_and_not_repeated(secret: str | None) -> None:
    channel = replace(CHANNEL, settings=KNOWN)
    async with stage() as on:
        with pytest.raises(ValueError) as refused:
            twilio(channel, secret, on.transport)
        assert isinstance(twilio(channel, f"{SECRET}\n", on.transport), Twilio)
    assert str(refused.value) == (
        "the secret is no pair of a SID (SK… or AC…) and its secret, a colon between"
    )


async def test_callbacks_that_nobody_could_believe_are_refused_before_the_first_send() -> None:
    hook = replace(CHANNEL, settings={**KNOWN, "status_callback": "https://hooks.example/t"})
    async with stage() as on:
        for secret in (SECRET, f"{SECRET} AC{'9' * 32}:of-another"):
            with pytest.raises(ValueError, match="status_callback needs the auth token") as refused:
                twilio(hook, secret, on.transport)
            assert "verysecret" not in str(refused.value)
        for secret in (f"{SECRET} {ACCOUNT}:token", f"{ACCOUNT}:token"):
            assert isinstance(twilio(hook, secret, on.transport), Twilio)


async def test_the_first_pair_sends_and_the_accounts_own_tokens_sign() -> None:
    tokens = f"{ACCOUNT}:primary {ACCOUNT.lower()}:secondary"
    async with stage() as on:
        await on.serve(TwilioServer(now=NOW))
        made = twilio(replace(CHANNEL, settings=KNOWN), f"{SECRET} {tokens}", on.transport)
        assert isinstance(await sent(made), Delivered)
    assert auth_tokens(f"{SECRET}\n{tokens}", ACCOUNT) == ("primary", "secondary")
    assert auth_tokens(SECRET, ACCOUNT) == ()
    assert auth_tokens("AC" + "9" * 32 + ":another", ACCOUNT) == ()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"account_sid": ACCOUNT},
        {"account_sid": "AC1", "from": "x"},
        {**KNOWN, "messaging_service_sid": "MG" + "3" * 32},
        {**KNOWN, "auth_token": "x"},
        {**KNOWN, "status_callback": "hooks.example"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, TwilioSettings)
