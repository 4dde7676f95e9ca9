"""FCM: what Google gets, over HTTP/2 and TLS, and what becomes of a row by its answer."""

import asyncio
import json
import uuid
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.channel import Facility
from fencepost.core.notification import Claimed
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
from fencepost.core.repeat import refused_repeat
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.collapse import topic_of
from fencepost.senders.fcm import BYTES_MAX, SCOPE, TOPIC_BYTES_MAX, Fcm, FcmSettings, fcm
from fencepost.senders.fcm_answers import meaning_of
from fencepost.senders.fcm_message import TARGETS
from fencepost.senders.google_account import BadAccount, read_account
from fencepost.senders.google_token import google_token
from fencepost.senders.standing import IN_A_ROW_MAX, Blame
from fencepost.senders.trouble import Trouble
from tests.core.rows import a_channel
from tests.senders.claimed import KEY, claimed
from tests.senders.fcm_server import ACCOUNT, PROJECT, TOKEN_SECONDS, FakeFcm, Refused, fault
from tests.senders.peers import H2Peer, Peer
from tests.senders.stage import HOST, Stage, never, stage, until
from tests.senders.tokens import EC_PEM

PHONE = "cT0k3n-_:APA91b" + "x" * 140
NOON = 1_800_000_000.0
SETTINGS = FcmSettings(endpoint=f"https://{HOST}")
SECRET = json.dumps(ACCOUNT)


class Time:
    """Wall time that a test moves."""

    def __init__(self) -> None:
        self.seconds = NOON

    def __call__(self) -> float:
        return self.seconds


def sender(on: Stage, now: Time, settings: FcmSettings = SETTINGS) -> Fcm:
    token = google_token(on.transport, read_account(SECRET), SCOPE, now=now)
    return Fcm(on.transport, settings, token, PROJECT, now=now)


def to_phone(payload: dict[str, Any] | None = None, **changes: Any) -> Claimed:
    written = {"title": "Your order has left"} if payload is None else payload
    return claimed(**{"recipient": PHONE, "payload": written, **changes})


def prepared(google: Fcm, row: Claimed) -> Prepared:
    message = google.prepare(row)
    assert isinstance(message, Prepared), message
    return message


async def sent(google: Fcm, row: Claimed, *, timeout_seconds: float = 10) -> Outcome:
    reply = await google.send(row, prepared(google, row), timeout_seconds=timeout_seconds)
    return google.classify(row, reply)


def message_in(fake: FakeFcm) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(fake.requests[-1].body)["message"]
    return said


# --- what Google gets


async def test_a_notification_reaches_the_screen() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        server = await on.serve(fake, protocol="h2")
        row = to_phone(expires_in_seconds=90.9)
        assert await sent(sender(on, now), row) == Delivered(f"projects/{PROJECT}/messages/0:1")
        assert fake.devices[PHONE].screen == {str(KEY): {"title": "Your order has left"}}
        message = message_in(fake)
        assert message["token"] == PHONE
        assert message["android"] == {"notification": {"tag": str(KEY)}, "ttl": "90s"}
        assert message["apns"]["headers"] == {
            "apns-collapse-id": str(KEY),
            "apns-expiration": str(int(NOON) + 90),
            "apns-priority": "10",
            "apns-push-type": "alert",
        }
        assert message["webpush"]["headers"] == {"TTL": "90", "Topic": topic_of(str(KEY))}
        assert server.log.connections == 1


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {
                "title": "t",
                "body": "b 😀",
                "image": "https://a.test/7.png",
                "icon": "star",
                "sound": "ding",
                "badge": 3.0,
                "thread": "orders",
                "category": "ORDER",
                "url": "https://a.test/7",
                "urgency": "low",
                "collapse": "order-7",
                "data": {"order": 7, "text": "ü", "list": [1, None]},
                "html": "<b>b</b>",
                "type": "order.left",
            },
            {
                "notification": {"title": "t", "body": "b 😀", "image": "https://a.test/7.png"},
                "data": {
                    "url": "https://a.test/7",
                    "order": "7",
                    "text": "ü",
                    "list": "[1,null]",
                },
                "android": {
                    "collapse_key": "order-7",
                    "priority": "NORMAL",
                    "notification": {
                        "tag": "order-7",
                        "icon": "star",
                        "sound": "ding",
                        "channel_id": "ORDER",
                        "notification_count": 3,
                    },
                },
                "apns": {
                    "headers": {
                        "apns-collapse-id": "order-7",
                        "apns-priority": "5",
                        "apns-push-type": "alert",
                    },
                    "payload": {
                        "aps": {
                            "sound": "ding",
                            "thread-id": "orders",
                            "category": "ORDER",
                            "badge": 3,
                            "mutable-content": 1,
                        }
                    },
                    "fcm_options": {"image": "https://a.test/7.png"},
                },
                "webpush": {
                    "headers": {"Topic": topic_of("order-7"), "Urgency": "low"},
                    "notification": {"tag": "order-7"},
                    "fcm_options": {"link": "https://a.test/7"},
                },
            },
        ),
        (
            {"silent": True, "title": "t", "urgency": "high", "data": {"sync": True}},
            {
                "data": {"sync": "true", "fencepost_key": str(KEY)},
                "android": {"priority": "HIGH"},
                "apns": {
                    "headers": {
                        "apns-collapse-id": str(KEY),
                        "apns-priority": "5",
                        "apns-push-type": "background",
                    },
                    "payload": {"aps": {"content-available": 1}},
                },
                "webpush": {"headers": {"Topic": topic_of(str(KEY)), "Urgency": "high"}},
            },
        ),
        (
            {"badge": 0},
            {
                "data": {"fencepost_key": str(KEY)},
                "apns": {
                    "headers": {
                        "apns-collapse-id": str(KEY),
                        "apns-priority": "10",
                        "apns-push-type": "alert",
                    },
                    "payload": {"aps": {"badge": 0}},
                },
                "webpush": {"headers": {"Topic": topic_of(str(KEY))}},
            },
        ),
        (
            {
                "title": "t",
                "icon": "https://a.test/i.png",
                "url": "app://orders/7",
                "data": {"url": "app://7"},
                "raw": {
                    "fcm": {
                        "android": {"restricted_package_name": "a.b", "notification": {"tag": "x"}},
                        "apns": None,
                        "fcm_options": {"analytics_label": "orders"},
                    },
                    "apns": {"aps": {"x": 1}},
                },
            },
            {
                "notification": {"title": "t"},
                "data": {"url": "app://7"},
                "android": {"restricted_package_name": "a.b", "notification": {"tag": "x"}},
                "webpush": {
                    "headers": {"Topic": topic_of(str(KEY))},
                    "notification": {"tag": str(KEY), "icon": "https://a.test/i.png"},
                },
                "fcm_options": {"analytics_label": "orders"},
            },
        ),
    ],
)
async def test_the_vocabulary_becomes_one_message_for_all_platforms(
    payload: dict[str, Any], expected: dict[str, Any]
) -> None:
    now = Time()
    async with stage() as on:
        google = sender(on, now)
        message = prepared(google, to_phone(payload)).request
        assert getattr(message, "content", None) == expected
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        if "apns" in expected:
            assert isinstance(await sent(google, to_phone(payload)), Delivered)
            assert "😀".encode() in fake.requests[0].body or "😀" not in str(payload)


@pytest.mark.parametrize(
    ("recipient", "target"),
    [
        (PHONE, {"token": PHONE}),
        ("topic:news.de", {"topic": "news.de"}),
        ("condition:'a' in topics && 'b' in topics", {"condition": "'a' in topics && 'b' in topics"}),
    ],
)  # fmt: skip
async def test_who_can_be_reached(recipient: str, target: dict[str, str]) -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        assert isinstance(await sent(sender(on, now), to_phone(recipient=recipient)), Delivered)
        message = message_in(fake)
        assert {name: message[name] for name in TARGETS if name in message} == target


async def test_the_lifetime_is_told_anew_at_each_attempt_and_the_bytes_stay() -> None:
    """G7: the digest is over the notification's content, not over what is of the attempt."""
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        first, later = to_phone(expires_in_seconds=3600.0), to_phone(expires_in_seconds=1800.0)
        await sent(google, first)
        one = message_in(fake)
        now.seconds += 1800
        await sent(google, later)
        two = message_in(fake)
        assert prepared(google, first).digest == prepared(google, later).digest
        assert (one["android"]["ttl"], two["android"]["ttl"]) == ("3600s", "1800s")
        ends = [each["apns"]["headers"]["apns-expiration"] for each in (one, two)]
        assert ends == [str(int(NOON) + 3600)] * 2
        await sent(google, to_phone(expires_in_seconds=0.5))
        assert message_in(fake)["android"]["ttl"] == "0s"
        assert message_in(fake)["apns"]["headers"]["apns-expiration"] == "0"
        await sent(google, to_phone())
        assert message_in(fake)["android"]["ttl"] == "2419200s"


# --- before anything is sent


def unsent(payload: dict[str, Any], recipient: str = PHONE) -> object:
    return sender(Stage(), Time()).prepare(to_phone(payload, recipient=recipient))


@pytest.mark.parametrize(
    ("recipient", "reason"),
    [
        ("", "recipient is no registration token"),
        ("a token", "recipient is no registration token"),
        (f"{PHONE}\n", "recipient is no registration token"),
        ("topic:", "recipient names no topic"),
        ("topic:a b", "recipient names no topic"),
        ("condition: ", "recipient holds no condition"),
    ],
)
async def test_what_is_no_recipient_is_rejected(recipient: str, reason: str) -> None:
    assert unsent({"title": "t"}, recipient) == Rejected(reason)


async def test_over_size_is_rejected_with_both_numbers_counted_in_bytes() -> None:
    """A limit counted in characters lets through what is never delivered: 1100 emoji are 4400 bytes. Keys count too."""
    assert isinstance(unsent({"body": "x" * (BYTES_MAX - len("body"))}), Prepared)
    assert unsent({"body": "x" * (BYTES_MAX - len("body") + 1)}) == Rejected(
        "message has 4097 bytes, the provider takes 4096"
    )
    assert unsent({"body": "😀" * 1100}) == Rejected(
        "message has 4404 bytes, the provider takes 4096"
    )
    assert unsent({"title": "t", "data": {"k" * 2100: "v" * 2000}}, "topic:news") == Rejected(
        f"message has 4106 bytes, the provider takes {TOPIC_BYTES_MAX}"
    )


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"title": "t", "data": {"x": float("nan")}}, "payload has no JSON form"),
        ({"title": "\ud800"}, "payload has no JSON form"),
        (
            {"title": "t", "raw": {"fcm": {"token": "somebody else"}}},
            "payload.raw.fcm names a target: that is the recipient's place",
        ),
    ],
)
async def test_what_fcm_may_not_get_is_rejected(payload: dict[str, Any], reason: str) -> None:
    assert unsent(payload) == Rejected(reason)


async def test_nothing_private_is_shown() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        await sent(google, to_phone())
        message = google.prepare(to_phone({"title": "Hallo", "collapse": "order-7"}))
        lent = await google._token.lend(timeout_seconds=1)
        shown = repr((message, google, google._token, lent, read_account(SECRET)))
        for secret in (PHONE, "Hallo", "order-7", "ya29", "PRIVATE", "gserviceaccount.com"):
            assert secret not in shown


# --- the access token


async def test_a_burst_fetches_one_token_and_keeps_it_until_shortly_before_its_end() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        server = await on.serve(fake, protocol="h2")
        google = sender(on, now)
        rows = [to_phone(idempotency_key=uuid.UUID(int=n)) for n in range(50)]
        outcomes = await asyncio.gather(*(sent(google, row) for row in rows))
        assert {type(each) for each in outcomes} == {Delivered}
        assert (fake.asked_for_tokens, server.log.connections) == (1, 1)
        now.seconds += TOKEN_SECONDS - 301
        await sent(google, to_phone())
        assert fake.asked_for_tokens == 1
        now.seconds += 2
        await sent(google, to_phone())
        assert fake.asked_for_tokens == 2


async def test_a_token_refused_before_its_time_is_fetched_anew_and_the_row_given_back() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        await sent(google, to_phone())
        fake.granted.clear()  # revoked
        several = await asyncio.gather(*(sent(google, to_phone()) for _ in range(5)))
        assert set(several) == {
            NotSent("UNAUTHENTICATED (401): again with a new access token", blameless=True)
        }
        assert isinstance(await sent(google, to_phone()), Delivered)
        assert fake.asked_for_tokens == 2
        fake.granted.clear()  # a good while later once more: again not final
        assert isinstance(await sent(google, to_phone()), NotSent)


async def test_a_new_token_that_is_refused_too_stops_the_channel() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        kinds = []
        for _ in range(3):
            row = to_phone()
            message = prepared(google, row)
            await google._token.lend(timeout_seconds=5)
            fake.granted.clear()
            reply = await google.send(row, message, timeout_seconds=5)
            kinds.append(type(google.classify(row, reply)))
        assert kinds == [NotSent, CredentialFailure, CredentialFailure]


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (
            400,
            b'{"error":"invalid_grant","error_description":"Invalid grant: account not found"}',
            CredentialFailure("no access token: invalid_grant"),
        ),
        (401, b'{"error":"invalid_client"}', CredentialFailure("no access token: invalid_client")),
        (403, b"<html>", CredentialFailure("no access token: answered 403")),
        (429, b"", NotSent("not_granted: the token service answered 429")),
        (500, b"", NotSent("not_granted: the token service answered 500")),
        (503, b"<html>", NotSent("not_granted: the token service answered 503")),
        (200, b"<html>", NotSent("not_granted: the token service answered 200")),
        (200, b'{"access_token":7}', NotSent("not_granted: the token service answered 200")),
        (
            200,
            b'{"access_token":"a\\r\\nb"}',
            NotSent("not_granted: the token service answered 200"),
        ),
    ],
)
async def test_without_a_token_nothing_is_sent_and_nothing_is_in_doubt(
    status: int, body: bytes, outcome: Outcome
) -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        fake.token_answers = [(status, body)]
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        assert await sent(google, to_phone()) == outcome
        assert fake.requests == []
        assert isinstance(await sent(google, to_phone()), Delivered)  # once it is given again


async def test_a_token_service_that_falls_silent_leaves_no_doubt() -> None:
    """Its own request may have been taken; the message has not left."""

    async def silent(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(silent, protocol="h2")
        google = sender(on, Time())
        several = await asyncio.gather(
            *(sent(google, to_phone(), timeout_seconds=1.0) for _ in range(4))
        )
        assert {type(each) for each in several} == {NotSent}
        assert len(server.log.requests) == 1


async def test_a_send_stopped_while_its_token_is_fetched_never_began() -> None:
    """Whoever waits for the same token is not stopped with it."""

    async def slow(peer: Peer) -> None:
        first = await peer.request()
        if len(asked) == 0:
            asked.append(first)
            await never()
        await peer.answer(first, 503, b"")
        await never()

    asked: list[object] = []
    async with stage() as on:
        await on.serve(slow, protocol="h2")
        google = sender(on, Time())
        row = to_phone()

        async def reply_of_send() -> Reply:
            try:
                return await google.send(row, prepared(google, row), timeout_seconds=5)
            except SendCancelled as stopped:
                return stopped.reply

        first, second = (asyncio.ensure_future(reply_of_send()) for _ in range(2))
        await until(lambda: bool(asked), "the first asks for a token")
        first.cancel()
        reply = await first
        assert (reply.phase, reply.reason) == (Phase.NOT_SENT, Trouble.CANCELLED)
        assert google.classify(row, await second) == NotSent(
            "not_granted: the token service answered 503"
        )


# --- doubt


@pytest.mark.parametrize("then", ["reset", 503, 500, 502])
async def test_what_was_stored_without_a_good_answer_is_doubt_and_a_repeat_shows_one(
    then: str | int,
) -> None:
    """FCM stored the message and answered 503, or nothing: the repeat carries the same tag, and one is seen."""
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        fake.stored_then = [then]
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        row = to_phone()
        assert isinstance(await sent(google, row), Uncertain)
        assert len(fake.requests) == 1  # never by itself
        assert google.facility == Facility(collapses=True)
        first = prepared(google, row).digest
        again = replace(row, attempts=2, doubt=True, first_digest=first)
        assert refused_repeat(again, prepared(google, again).digest, google.facility) is None
        assert isinstance(await sent(google, again), Delivered)
        assert fake.devices[PHONE].shown == 2
        assert len(fake.devices[PHONE].screen) == 1


async def test_a_repeat_that_shows_nothing_can_be_told_by_its_key() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        fake.stored_then = ["reset"]
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        row = to_phone({"data": {"sync": 1}})
        assert isinstance(await sent(google, row), Uncertain)
        assert isinstance(await sent(google, row), Delivered)
        one, two = fake.devices[PHONE].handed
        assert one == two == {"sync": "1", "fencepost_key": str(KEY)}


async def test_a_read_that_stalls_is_one_request_on_one_connection() -> None:
    """A short timeout multiplied by a library's own retries."""

    async def stalls(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            if asked.headers[":path"] == "/token":
                await peer.answer(asked, 200, b'{"access_token":"t","expires_in":3599}')

    async with stage() as on:
        server = await on.serve(stalls, protocol="h2")
        google = sender(on, Time())
        assert isinstance(await sent(google, to_phone(), timeout_seconds=2.0), Uncertain)
        assert len(server.log.requests) == 2
        assert server.log.connections == 1


async def test_a_goaway_of_a_connection_that_got_old_loses_nothing() -> None:
    """FCM says max_age or session_timeout: the next send goes to another connection."""
    now = Time()

    async def retires(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        if peer.number > 1:
            await fake(peer)
        for _ in range(2):
            asked = await peer.request()
            body = fake.token(asked) if asked.headers[":path"] == "/token" else fake.message(asked)
            await peer.answer(asked, 200, body)
        late = await peer.request()
        await peer.go_away(late.stream - 2)
        await never()

    async with stage() as on:
        fake = FakeFcm(now, PHONE)
        server = await on.serve(retires, protocol="h2")
        google = sender(on, now)
        outcomes = [type(await sent(google, to_phone())) for _ in range(3)]
        assert outcomes == [Delivered, NotSent, Delivered]
        assert server.log.connections == 2


# --- devices


async def test_a_token_that_is_gone_is_told() -> None:
    now = Time()
    async with stage() as on:
        await on.serve(FakeFcm(now), protocol="h2")
        assert await sent(sender(on, now), to_phone()) == Unregistered("UNREGISTERED (404)")


async def test_a_wrong_project_ends_no_tokens() -> None:
    now = Time()
    async with stage() as on:
        await on.serve(FakeFcm(now, PHONE), protocol="h2")
        token = google_token(on.transport, read_account(SECRET), SCOPE, now=now)
        elsewhere = Fcm(on.transport, SETTINGS, token, "another-project", now=now)
        said = await sent(elsewhere, to_phone())
        assert said == CredentialFailure(
            "NOT_FOUND (404): no such project, or the endpoint is wrong"
        )


async def test_apples_refusal_of_the_project_does_not_stop_android() -> None:
    """THIRD_PARTY_AUTH_ERROR: its 401 is not about our access token, and not about phones that Google reaches."""
    now = Time()
    refusal = fault(401, "UNAUTHENTICATED", "Expected OAuth 2 access token", fcm="THIRD_PARTY_AUTH_ERROR")  # fmt: skip

    class Mixed(FakeFcm):
        def stored(self, message: dict[str, Any]) -> None:
            if message["token"].startswith("iphone"):
                raise Refused(401, refusal)
            super().stored(message)

    async with stage() as on:
        fake = Mixed(now, PHONE)
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        for number in range(30):
            assert isinstance(await sent(google, to_phone()), Delivered)
            iphone = await sent(google, to_phone(recipient=f"iphone{number}"))
            assert iphone == Failed("THIRD_PARTY_AUTH_ERROR (401)", 60.0)
        assert fake.asked_for_tokens == 1
        alone = [
            type(await sent(google, to_phone(recipient=f"iphone{number}")))
            for number in range(IN_A_ROW_MAX)
        ]
        assert alone[0] is Failed
        assert alone[-1] is CredentialFailure


# --- the table (providers: FCM)

VIOLATION = "type.googleapis.com/google.rpc.BadRequest"
QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"
INFO = "type.googleapis.com/google.rpc.ErrorInfo"
HTML = b"<!DOCTYPE html><title>Error 502 (Server Error)!!1</title>"
PROJECT_QUOTA = (
    "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute' of service"
    " 'fcm.googleapis.com'"
)
NO_TOKEN = "The registration token is not a valid FCM registration token"
DENIED, OVER, BAD = "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"
GONE = Unregistered("INVALID_ARGUMENT (400)", guarded=True)
REFUSED = Rejected("INVALID_ARGUMENT (400)")


def violating(field: str) -> dict[str, Any]:
    return {VIOLATION: {"fieldViolations": [{"field": field, "description": "whatever"}]}}


def over(description: str) -> dict[str, Any]:
    return {QUOTA: {"violations": [{"subject": "x", "description": description}]}}


def no_such(what: str) -> Outcome:
    return CredentialFailure(f"{what} (404): no such project, or the endpoint is wrong")


def not_fcm(status: int) -> Outcome:
    return CredentialFailure(f"answered ({status}), not as FCM does: is the endpoint right?")


def throttled(code: str, wait: float = 60.0, *, channel_wide: bool = True) -> Outcome:
    return Throttled(f"{code} (429)", wait, channel_wide=channel_wide)


@pytest.mark.parametrize(
    ("body", "status", "headers", "outcome"),
    [
        (b'{"name":"projects/p/messages/1"}', 200, {}, Delivered("projects/p/messages/1")),
        (HTML, 200, {}, Uncertain("answered 200, but not as FCM does")),
        (b"", 202, {}, Uncertain("answered 202, but not as FCM does")),
        # 400
        (fault(400, BAD, fcm=BAD, details=violating("message.token")), 400, {}, GONE),
        (fault(400, BAD, NO_TOKEN, fcm=BAD), 400, {}, GONE),
        (fault(400, BAD, details=violating("message.data[0].value")), 400, {}, REFUSED),
        (fault(400, BAD, "Request contains an invalid argument."), 400, {}, REFUSED),
        (b"", 400, {}, Rejected("answered (400)")),
        # 401, 403, 404, 413
        (
            fault(401, "UNAUTHENTICATED"),
            401,
            {},
            CredentialFailure("UNAUTHENTICATED (401), with a new access token too"),
        ),
        (fault(403, DENIED), 403, {}, CredentialFailure("PERMISSION_DENIED (403)")),
        (
            fault(403, DENIED, details={INFO: {"reason": "SERVICE_DISABLED"}}),
            403,
            {},
            CredentialFailure("PERMISSION_DENIED (403)"),
        ),
        (
            fault(403, DENIED, fcm="SENDER_ID_MISMATCH"),
            403,
            {},
            Unregistered("SENDER_ID_MISMATCH (403)", guarded=True),
        ),
        (fault(404, "NOT_FOUND", fcm="UNREGISTERED"), 404, {}, Unregistered("UNREGISTERED (404)")),
        (fault(404, "NOT_FOUND"), 404, {}, no_such("NOT_FOUND")),
        (HTML, 404, {}, no_such("answered")),
        (HTML, 413, {}, Rejected("answered (413)")),
        # 429
        (fault(429, OVER, fcm="QUOTA_EXCEEDED"), 429, {}, throttled("QUOTA_EXCEEDED")),
        (
            fault(429, OVER, fcm="QUOTA_EXCEEDED"),
            429,
            {"retry-after": "7"},
            throttled("QUOTA_EXCEEDED", 7.0),
        ),
        (fault(429, OVER, PROJECT_QUOTA), 429, {}, throttled("RESOURCE_EXHAUSTED")),
        (
            fault(429, OVER, "Topic quota exceeded.", fcm="QUOTA_EXCEEDED"),
            429,
            {},
            throttled("QUOTA_EXCEEDED", channel_wide=False),
        ),
        (
            fault(429, OVER, fcm="QUOTA_EXCEEDED", details=over("Device message rate exceeded")),
            429,
            {},
            throttled("QUOTA_EXCEEDED", channel_wide=False),
        ),
        # 5xx
        (fault(500, "INTERNAL", fcm="INTERNAL"), 500, {}, Uncertain("INTERNAL (500)", 10.0)),
        (HTML, 502, {}, Uncertain("answered (502)", 10.0)),
        (fault(503, "X", fcm="UNAVAILABLE"), 503, {}, Uncertain("UNAVAILABLE (503)", 10.0)),
        (
            fault(503, "X", fcm="UNAVAILABLE"),
            503,
            {"retry-after": "120"},
            Uncertain("UNAVAILABLE (503)", 120.0),
        ),
        (HTML, 503, {"retry-after": "3"}, Uncertain("answered (503)", 10.0)),
        (HTML, 504, {}, Uncertain("answered (504)", 10.0)),
        # what is not FCM's own answer, or none that can be read
        (b"", 302, {}, not_fcm(302)),
        (HTML, 405, {}, not_fcm(405)),
        (fault(400, f"to {PHONE}"), 400, {}, Rejected("an unknown error (400)")),  # G10
        (b'{"error":[]}', 400, {}, Rejected("answered (400)")),
        (
            b'{"error":{"details":[7,{"fieldViolations":[7]}]}}',
            400,
            {},
            Rejected("answered (400)"),
        ),
    ],
)
def test_what_an_answer_means(
    body: bytes, status: int, headers: dict[str, str], outcome: Outcome
) -> None:
    reply = Reply(phase=Phase.ANSWERED, status=status, headers=headers, body=body)
    assert meaning_of(reply, Blame.NOBODY_KNOWS) == outcome


@pytest.mark.parametrize(
    ("phase", "reason", "kind"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent),
        (Phase.NOT_SENT, Trouble.STREAM_REFUSED, NotSent),
        (Phase.NOT_SENT, Trouble.NO_KEYS, CredentialFailure),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain),
        (Phase.UNCERTAIN, Trouble.CONNECTION_LOST, Uncertain),
    ],
)
def test_what_no_answer_means(phase: Phase, reason: Trouble, kind: type) -> None:
    assert isinstance(meaning_of(Reply(phase=phase, reason=reason), Blame.NOBODY_KNOWS), kind)


async def test_one_invalid_token_does_not_touch_its_neighbours() -> None:
    """One bad token once made the rest of the batch go out twice."""
    now = Time()
    async with stage() as on:
        fake = FakeFcm(now, PHONE, "another:phone")
        await on.serve(fake, protocol="h2")
        google = sender(on, now)
        rows = [to_phone(recipient=each) for each in (PHONE, "nobody:phone", "another:phone")]
        outcomes = await asyncio.gather(*(sent(google, row) for row in rows))
        assert [type(each) for each in outcomes] == [Delivered, Unregistered, Delivered]
        assert len(fake.requests) == 3


# --- settings and secret


def test_a_channel_has_its_sender() -> None:
    built = fcm(a_channel(sender="fcm", settings={}), SECRET, Stage().transport)
    assert built._target == f"/v1/projects/{PROJECT}/messages:send"
    assert built._origin.host == "fcm.googleapis.com"
    other = fcm(a_channel(sender="fcm", settings={"project_id": "x-1"}), SECRET, Stage().transport)
    assert other._target == "/v1/projects/x-1/messages:send"


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        (None, "the secret is no key file (JSON) of a service account"),
        ("hunter2", "the secret is no key file (JSON) of a service account"),
        ('{"type": "service_account"}', "the secret is no key file (JSON) of a service account"),
        (
            json.dumps({**ACCOUNT, "type": "authorized_user"}),
            "the secret is a key file, but not of a service account",
        ),
        (
            json.dumps({**ACCOUNT, "private_key": EC_PEM}),
            "private_key of the service account: it is no private RSA key",
        ),
        (
            json.dumps({**ACCOUNT, "private_key": "hunter2"}),
            "private_key of the service account: it is no private key in PEM",
        ),
    ],
)
def test_a_secret_that_is_no_key_file_is_refused_without_being_quoted(
    secret: str | None, sentence: str
) -> None:
    with pytest.raises(BadAccount) as refused:
        fcm(a_channel(sender="fcm", settings={}), secret, Stage().transport)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "settings",
    [{"project": "x"}, {"project_id": "a/b"}, {"ttl_seconds": -1}, {"ttl_seconds": 2_419_201}],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, FcmSettings)
