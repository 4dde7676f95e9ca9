"""APNs: what Apple gets, over HTTP/2 and TLS, and what becomes of a row by its answer."""

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.channel import Facility
from fencepost.core.exchange import GateWord
from fencepost.core.notification import AttemptOutcome, Claimed
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
from fencepost.core.transition import transition
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.apns import BYTES_MAX, Apns, ApnsSettings, apns
from fencepost.senders.apns_answers import meaning_of
from fencepost.senders.apns_message import content_of
from fencepost.senders.apns_token import ProviderToken, issue_time
from fencepost.senders.collapse import collapse_id
from fencepost.senders.jwt import BadKey
from fencepost.senders.trouble import Trouble
from tests.core.rows import a_channel, a_sent
from tests.senders.apns_server import KEY_ID, STREAMS_MAX, TEAM_ID, TOPIC, Device, FakeApns
from tests.senders.claimed import KEY, claimed
from tests.senders.peers import H2Peer, Peer
from tests.senders.stage import HOST, Stage, never, stage, until
from tests.senders.tokens import EC_KEY, EC_PEM, RSA_PEM

PHONE = "ab12" * 16
NOON = 1_800_000_300.0  # the very second a half hour's token begins
SETTINGS = ApnsSettings(topic=TOPIC, team_id=TEAM_ID, key_id=KEY_ID, endpoint=f"https://{HOST}")


class Time:
    """Wall time that a test moves."""

    def __init__(self, seconds: float = NOON) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


def token_at(now: Time) -> ProviderToken:
    return ProviderToken(EC_KEY, team_id=TEAM_ID, key_id=KEY_ID, now=now)


def sender(on: Stage, now: Time, settings: ApnsSettings = SETTINGS) -> Apns:
    return Apns(on.transport, settings, token_at(now), now=now)


def to_phone(payload: dict[str, Any] | None = None, **changes: Any) -> Claimed:
    written = {"title": "Your order has left"} if payload is None else payload
    return claimed(**{"recipient": PHONE, "payload": written, **changes})


def prepared(apple: Apns, row: Claimed) -> Prepared:
    message = apple.prepare(row)
    assert isinstance(message, Prepared), message
    return message


async def sent(apple: Apns, row: Claimed) -> Outcome:
    reply = await apple.send(row, prepared(apple, row), timeout_seconds=10)
    return apple.classify(row, reply)


async def serve(on: Stage, apple: FakeApns) -> Any:
    return await on.serve(apple, protocol="h2", streams_max=1)


# --- what Apple gets


async def test_a_notification_reaches_the_screen() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        await serve(on, fake)
        row = to_phone(expires_in_seconds=90.9)
        assert await sent(sender(on, now), row) == Delivered(str(KEY))
        asked = fake.requests[0].headers
        assert asked[":path"] == f"/3/device/{PHONE}"
        assert asked["apns-topic"] == TOPIC
        assert asked["apns-push-type"] == "alert"
        assert asked["apns-priority"] == "10"
        assert asked["apns-id"] == str(KEY)
        assert asked["apns-collapse-id"] == str(KEY)
        assert asked["apns-expiration"] == str(int(NOON) + 90)
        shown = {"aps": {"alert": {"title": "Your order has left"}}}
        assert fake.devices[PHONE].screen == {str(KEY): shown}


@pytest.mark.parametrize(
    ("payload", "headers", "content"),
    [
        (
            {
                "title": "t",
                "body": "b 😀",
                "sound": "ding",
                "badge": 3.0,
                "thread": "orders",
                "category": "ORDER",
                "url": "https://a.test/7",
                "image": "https://a.test/7.png",
                "icon": "star",
                "type": "order.left",
                "html": "<b>b</b>",
                "urgency": "low",
                "collapse": "order-7",
                "data": {"order": 7},
            },
            {"apns-priority": "5", "apns-push-type": "alert", "apns-collapse-id": "order-7"},
            {
                "aps": {
                    "alert": {"title": "t", "body": "b 😀"},
                    "sound": "ding",
                    "badge": 3,
                    "thread-id": "orders",
                    "category": "ORDER",
                    "mutable-content": 1,
                },
                "url": "https://a.test/7",
                "image": "https://a.test/7.png",
                "order": 7,
            },
        ),
        (
            {"silent": True, "title": "t", "badge": 1, "urgency": "high", "data": {"sync": True}},
            {"apns-priority": "5", "apns-push-type": "background"},
            {"aps": {"content-available": 1}, "sync": True, "fencepost_key": str(KEY)},
        ),
        (
            {"data": {"sync": True}},
            {"apns-priority": "5", "apns-push-type": "background"},
            {"aps": {"content-available": 1}, "sync": True, "fencepost_key": str(KEY)},
        ),
        (
            {"badge": 0},
            {"apns-priority": "10", "apns-push-type": "alert"},
            {"aps": {"badge": 0}},
        ),
        (
            {
                "title": "t",
                "url": "https://a.test/7",
                "data": {"url": "app://7"},
                "raw": {
                    "apns": {
                        "aps": {"interruption-level": "time-sensitive", "alert": {"title": None}}
                    },
                    "fcm": {"x": 1},
                },
            },
            {"apns-priority": "10"},
            {"aps": {"alert": {}, "interruption-level": "time-sensitive"}, "url": "app://7"},
        ),
    ],
)
async def test_the_vocabulary_becomes_apples(
    payload: dict[str, Any], headers: dict[str, str], content: dict[str, Any]
) -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        await serve(on, fake)
        assert await sent(sender(on, now), to_phone(payload)) == Delivered(str(KEY))
        asked = fake.requests[0]
        assert json.loads(asked.body) == content
        assert headers.items() <= asked.headers.items()
        assert "😀".encode() in asked.body or "😀" not in str(payload)  # never escaped


async def test_a_collapse_that_no_header_can_hold_goes_as_its_hash() -> None:
    plain = to_phone({"title": "t", "collapse": "order-7"})
    assert collapse_id(plain) == "order-7"
    odd = to_phone({"title": "t", "collapse": "Bestellung für\r\nx: y"})
    assert collapse_id(odd) == collapse_id(replace(odd, idempotency_key=uuid.uuid4()))
    assert collapse_id(odd).isascii()
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        await serve(on, fake)
        assert isinstance(await sent(sender(on, now), odd), Delivered)
        assert fake.requests[0].headers["apns-collapse-id"] == collapse_id(odd)


async def test_the_expiry_is_told_anew_at_each_attempt_and_the_bytes_stay() -> None:
    """G7: digest and body are the notification's, expiry and token the attempt's."""
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        await serve(on, fake)
        apple = sender(on, now)
        first, later = to_phone(expires_in_seconds=3600.0), to_phone(expires_in_seconds=1800.0)
        await sent(apple, first)
        now.seconds += 1800
        assert prepared(apple, later).digest == prepared(apple, first).digest
        await sent(apple, later)
        one, two = fake.requests
        assert one.body == two.body
        assert one.headers["apns-expiration"] == two.headers["apns-expiration"]
        assert one.headers["authorization"] != two.headers["authorization"]
        await sent(apple, to_phone(expires_in_seconds=0.5))
        await sent(apple, to_phone())
        now_or_never, whenever = fake.requests[2:]
        assert now_or_never.headers["apns-expiration"] == "0"
        assert int(whenever.headers["apns-expiration"]) == now.seconds + 28 * 86400


# --- before anything is sent


def unsent(payload: dict[str, Any], *, recipient: str = PHONE, **settings: Any) -> object:
    wanted = msgspec.structs.replace(SETTINGS, **settings)
    apple = Apns(Stage().transport, wanted, token_at(Time()))
    return apple.prepare(to_phone(payload, recipient=recipient))


@pytest.mark.parametrize(
    "recipient", ["", "not a token", "../3/device/00", f"{PHONE}\n", "ab12", f"{PHONE}?a=b"]
)
async def test_what_is_no_device_token_is_rejected(recipient: str) -> None:
    said = unsent({"title": "t"}, recipient=recipient)
    assert said == Rejected("recipient is no device token: it is not hexadecimal")


async def test_over_size_is_rejected_with_both_numbers_counted_in_bytes() -> None:
    """A limit counted in characters lets through what is never delivered: 1100 emoji are 4400 bytes."""
    empty = len(json.dumps({"aps": {"alert": {"body": ""}}}, separators=(",", ":")))
    assert isinstance(unsent({"body": "x" * (BYTES_MAX - empty)}), Prepared)
    assert unsent({"body": "x" * (BYTES_MAX - empty + 1)}) == Rejected(
        "message has 4097 bytes, the provider takes 4096"
    )
    assert unsent({"body": "😀" * 1100}) == Rejected(
        f"message has {4400 + empty} bytes, the provider takes 4096"
    )
    assert isinstance(unsent({"body": "😀" * 1100}, push_type="voip"), Prepared)
    assert isinstance(unsent({"body": "😀" * 1400}, push_type="voip"), Rejected)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"title": "t", "data": {"aps": {"x": 1}}}, "payload.data: the key aps is Apple's"),
        ({"title": "t", "data": {"x": float("nan")}}, "payload has no JSON form"),
        ({"title": "\ud800"}, "payload has no JSON form"),
    ],
)
async def test_what_apple_could_not_read_is_rejected(payload: dict[str, Any], reason: str) -> None:
    assert unsent(payload) == Rejected(reason)


async def test_nothing_private_is_shown() -> None:
    apple = Apns(Stage().transport, SETTINGS, token_at(Time()))
    message = apple.prepare(to_phone({"title": "Hallo", "collapse": "order-7"}))
    shown = repr(message) + repr(apple) + repr(apple._token) + repr(apple._origin)
    for secret in (PHONE, "Hallo", "order-7", HOST, KEY_ID, "PRIVATE"):
        assert secret not in shown


# --- the token


async def test_ten_handlers_at_once_show_one_token() -> None:
    """Timers and workers that each mint their own get TooManyProviderTokenUpdates."""
    starts = [Time(NOON + 100.7 * number) for number in range(10)]
    with ThreadPoolExecutor(10) as handlers:
        tokens = list(handlers.map(lambda start: token_at(start).current(), starts))
    assert len(set(tokens)) == 1


async def test_a_token_changes_every_half_hour_and_is_never_too_old() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        await serve(on, fake)
        apple = sender(on, now)
        changes: list[int] = []
        for minute in range(180):
            now.seconds = NOON + minute * 60
            assert isinstance(await sent(apple, to_phone()), Delivered)
            if len(fake.tokens) > len(changes):
                changes.append(minute)
        assert changes == [0, 30, 60, 90, 120, 150]


@pytest.mark.parametrize("skew", [-1499, -60, 60, 299])
async def test_a_clock_that_is_a_little_wrong_does_no_harm(skew: int) -> None:
    for second in range(1800):
        age = NOON + second - issue_time(NOON + second + skew)
        assert 0 <= age <= 3600


async def test_an_expired_token_is_given_back_once_and_then_stops_the_channel() -> None:
    """Endless reconnects with an expired credential: 403 ExpiredProviderToken twice stops the channel, and costs the
    row no attempt."""
    now, apples = Time(), Time(NOON + 4000)
    async with stage() as on:
        fake = FakeApns(apples, PHONE)
        server = await serve(on, fake)
        apple = sender(on, now)
        first = await sent(apple, to_phone())
        assert first == NotSent(
            "ExpiredProviderToken (403): again with a token of its time", blameless=True
        )
        second = await sent(apple, to_phone())
        assert isinstance(second, CredentialFailure)
        for outcome in (first, second):
            settled = transition(a_sent(to_phone(), channel=a_channel()), outcome)
            assert settled.word.outcome is AttemptOutcome.NOT_SENT  # the attempt is refunded
            assert settled.word.kind is None  # the row stays open
            paused = isinstance(outcome, CredentialFailure)
            assert isinstance(settled.gate, GateWord) is paused
        apples.seconds = now.seconds = NOON + 4000  # the clock was put right: another token
        assert isinstance(await sent(apple, to_phone()), Delivered)
        assert server.log.connections == 1


async def test_those_under_way_when_a_token_is_called_expired_are_given_back_too() -> None:
    """One answer must not make the others' the second."""

    async def late(peer: Peer) -> None:
        asked = [await peer.request() for _ in range(5)]
        for each in asked:
            await peer.answer(each, 403, b'{"reason":"ExpiredProviderToken"}')
        await never()

    async with stage() as on:
        await on.serve(late, protocol="h2")
        apple = sender(on, Time())
        outcomes = await asyncio.gather(*(sent(apple, to_phone()) for _ in range(5)))
        assert {type(each) for each in outcomes} == {NotSent}


# --- doubt


async def test_a_lost_answer_is_doubt_and_a_repeat_replaces_what_was_shown() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        fake.answers_lost = 1
        server = await serve(on, fake)
        apple = sender(on, now)
        row = to_phone()
        assert isinstance(await sent(apple, row), Uncertain)
        assert len(fake.requests) == 1  # never by itself
        assert apple.facility == Facility(collapses=True)
        first = prepared(apple, row).digest
        again = replace(row, attempts=2, doubt=True, first_digest=first)
        assert refused_repeat(again, prepared(apple, again).digest, apple.facility) is None
        assert await sent(apple, again) == Delivered(str(KEY))
        assert len(fake.devices[PHONE].screen) == 1
        assert server.log.connections == 2


async def test_a_repeat_that_shows_nothing_can_be_told_by_its_key() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        fake.answers_lost = 1
        await serve(on, fake)
        apple = sender(on, now)
        row = to_phone({"silent": True, "data": {"sync": 1}})
        assert isinstance(await sent(apple, row), Uncertain)
        assert isinstance(await sent(apple, row), Delivered)
        one, two = fake.devices[PHONE].woken
        assert one["fencepost_key"] == two["fencepost_key"] == str(KEY)


# --- connections


async def test_a_cold_burst_waits_for_the_first_good_token_on_one_connection() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        server = await serve(on, fake)
        apple = sender(on, now)
        rows = [to_phone(idempotency_key=uuid.UUID(int=n)) for n in range(60)]
        outcomes = await asyncio.gather(*(sent(apple, row) for row in rows))
        assert {type(each) for each in outcomes} == {Delivered}
        assert server.log.connections == 1
        assert len(fake.devices[PHONE].screen) == 60
        assert STREAMS_MAX > 60


async def test_a_key_has_connections_of_its_own() -> None:
    """UnrelatedKeyIdInToken: a connection belongs to the key of its first push."""
    now = Time()
    async with stage() as on:
        server = await on.serve(FakeApns(now, PHONE), protocol="h2")
        ours = sender(on, now)
        theirs = sender(on, now, msgspec.structs.replace(SETTINGS, key_id="ANOTHERKEY"))
        for apple in (ours, theirs, ours, theirs):
            await sent(apple, to_phone())
        assert server.log.connections == 2


async def test_a_refused_key_stops_its_own_channel_only() -> None:
    """One expired credential once blocked the other apps."""
    now = Time()
    async with stage() as on:
        await serve(on, FakeApns(now, PHONE))
        theirs = msgspec.structs.replace(SETTINGS, team_id="ANOTHER123")
        stranger = ProviderToken(EC_KEY, team_id="ANOTHER123", key_id=KEY_ID, now=now)
        refused, ours = Apns(on.transport, theirs, stranger, now=now), sender(on, now)
        for _ in range(3):
            said = await sent(refused, to_phone())
            assert said == CredentialFailure("InvalidProviderToken (403)")
            assert isinstance(await sent(ours, to_phone()), Delivered)


async def test_a_send_stopped_under_way_is_doubt_and_one_not_begun_is_not() -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await never()

    async with stage() as on:
        server = await on.serve(silent, protocol="h2", streams_max=1)
        apple, row = sender(on, Time()), to_phone()

        async def stopped_reply() -> Reply:
            try:
                return await apple.send(row, prepared(apple, row), timeout_seconds=10)
            except SendCancelled as stopped:
                return stopped.reply

        under_way, waiting = (asyncio.ensure_future(stopped_reply()) for _ in range(2))
        await until(lambda: len(server.log.requests) == 1, "the first arrived")
        for each in (waiting, under_way):
            each.cancel()
        assert isinstance(apple.classify(row, await waiting), NotSent)
        assert isinstance(apple.classify(row, await under_way), Uncertain)


async def test_a_goaway_gives_back_what_apple_did_not_take() -> None:
    """Half of 300 000 pushes were lost around a GOAWAY: what it does not cover is sent again on a new connection."""

    async def shuts_down(peer: Peer) -> None:
        assert isinstance(peer, H2Peer)
        if peer.number > 1:
            while True:
                await peer.answer(await peer.request(), 200, b"")
        asked = [await peer.request() for _ in range(4)]
        await peer.go_away(asked[1].stream)
        for each in asked[:2]:
            await peer.answer(each, 200, b"")
        await never()

    async with stage() as on:
        server = await on.serve(shuts_down, protocol="h2")
        apple = sender(on, Time())
        outcomes = await asyncio.gather(*(sent(apple, to_phone()) for _ in range(4)))
        assert [type(each) for each in outcomes] == [Delivered, Delivered, NotSent, NotSent]
        assert isinstance(await sent(apple, to_phone()), Delivered)
        assert server.log.connections == 2


# --- devices


async def test_a_token_that_is_gone_comes_with_apples_instant() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now)
        fake.devices[PHONE] = Device(gone_at_ms=1_700_000_000_123)
        await serve(on, fake)
        said = await sent(sender(on, now), to_phone())
        assert said == Unregistered("Unregistered (410)", gone_at=1_700_000_000.123)


async def test_a_bad_token_is_gone_only_if_the_environment_is_right() -> None:
    """One token alone is reported; a sandbox's tokens at the production endpoint would all be answered so."""
    now = Time()
    async with stage() as on:
        await serve(on, FakeApns(now, PHONE))
        stranger = "00" * 32
        said = await sent(sender(on, now), to_phone(recipient=stranger))
        assert said == Unregistered("BadDeviceToken (400)", guarded=True)


async def test_a_token_of_another_app_stops_a_channel_only_where_nothing_ever_arrived() -> None:
    now = Time()
    async with stage() as on:
        fake = FakeApns(now, PHONE)
        other = "cd34" * 16
        fake.devices[other] = Device(topic="com.example.other")
        await serve(on, fake)
        apple = sender(on, now)
        stray = to_phone(recipient=other)
        assert await sent(apple, stray) == CredentialFailure("DeviceTokenNotForTopic (400)")
        assert isinstance(await sent(apple, to_phone()), Delivered)
        assert await sent(apple, stray) == Unregistered(
            "DeviceTokenNotForTopic (400)", guarded=True
        )


# --- the table (providers: APNs)


def answered(status: int, reason: str | None, *, note: str = "", **more: Any) -> Reply:
    body = b"" if reason is None else json.dumps({"reason": reason, **more}).encode()
    return Reply(phase=Phase.ANSWERED, status=status, body=body, reason=note)


@pytest.mark.parametrize(
    ("status", "reason", "outcome"),
    [
        (400, "BadDeviceToken", Unregistered("BadDeviceToken (400)", guarded=True)),
        (400, "DeviceTokenNotForTopic", CredentialFailure("DeviceTokenNotForTopic (400)")),
        (400, "BadTopic", CredentialFailure("BadTopic (400)")),
        (400, "TopicDisallowed", CredentialFailure("TopicDisallowed (400)")),
        (400, "MissingTopic", CredentialFailure("MissingTopic (400)")),
        (400, "BadCollapseId", Rejected("BadCollapseId (400)")),
        (400, "BadExpirationDate", Rejected("BadExpirationDate (400)")),
        (400, "BadMessageId", Rejected("BadMessageId (400)")),
        (400, "BadPriority", Rejected("BadPriority (400)")),
        (400, "DuplicateHeaders", Rejected("DuplicateHeaders (400)")),
        (400, "InvalidPushType", Rejected("InvalidPushType (400)")),
        (400, "MissingDeviceToken", Rejected("MissingDeviceToken (400)")),
        (400, "PayloadEmpty", Rejected("PayloadEmpty (400)")),
        (400, "SomethingNew", Rejected("SomethingNew (400)")),
        (400, "IdleTimeout", Failed("IdleTimeout (400)")),
        (403, "InvalidProviderToken", CredentialFailure("InvalidProviderToken (403)")),
        (403, "MissingProviderToken", CredentialFailure("MissingProviderToken (403)")),
        (403, "BadCertificate", CredentialFailure("BadCertificate (403)")),
        (403, "BadCertificateEnvironment", CredentialFailure("BadCertificateEnvironment (403)")),
        (403, "Forbidden", CredentialFailure("Forbidden (403)")),
        (403, "BadEnvironmentKeyInToken", CredentialFailure("BadEnvironmentKeyInToken (403)")),
        (403, "BadEnvironmentKeyIdInToken", CredentialFailure("BadEnvironmentKeyIdInToken (403)")),
        (403, "UnrelatedKeyIdInToken", NotSent("UnrelatedKeyIdInToken (403)")),
        (404, "BadPath", Rejected("BadPath (404)")),
        (405, "MethodNotAllowed", Rejected("MethodNotAllowed (405)")),
        (410, "Unregistered", Unregistered("Unregistered (410)")),
        (410, "ExpiredToken", Unregistered("ExpiredToken (410)")),
        (413, "PayloadTooLarge", Rejected("PayloadTooLarge (413)")),
        (429, "TooManyRequests", Throttled("TooManyRequests (429)", None, channel_wide=False)),
        (
            429,
            "TooManyProviderTokenUpdates",
            Throttled("TooManyProviderTokenUpdates (429)", 1200.0, channel_wide=True),
        ),
        (500, "InternalServerError", Failed("InternalServerError (500)", 900.0)),
        (503, "ServiceUnavailable", Failed("ServiceUnavailable (503)", 900.0)),
        (503, "Shutdown", Failed("Shutdown (503)", 900.0)),
        (504, "GatewayTimeout", Uncertain("GatewayTimeout (504)")),
        # what is not Apple's own answer
        (404, None, CredentialFailure("answered 404 without a reason, not as APNs does: is the endpoint right?")),
        (301, None, CredentialFailure("answered 301 without a reason, not as APNs does: is the endpoint right?")),
        (410, None, Unregistered("answered 410 without a reason", guarded=True)),
        (410, "Other", Unregistered("Other (410)", guarded=True)),
        (429, None, Throttled("answered 429 without a reason")),
        (502, None, Uncertain("answered 502 without a reason")),
        (204, None, Uncertain("answered 204 without a reason")),
        (400, f"token {PHONE}", Rejected("an unknown error (400)")),  # G10
    ],
)  # fmt: skip
def test_what_an_answer_means(status: int, reason: str | None, outcome: Outcome) -> None:
    assert meaning_of(answered(status, reason), topic_accepted=False) == outcome


def test_what_an_expired_token_means() -> None:
    once = answered(403, "ExpiredProviderToken", note=Trouble.KEYS_REFUSED.value)
    twice = answered(403, "ExpiredProviderToken")
    assert isinstance(meaning_of(once, topic_accepted=True), NotSent)
    assert isinstance(meaning_of(twice, topic_accepted=True), CredentialFailure)


@pytest.mark.parametrize(
    ("timestamp", "gone_at"), [(1_700_000_000_500, 1_700_000_000.5), (True, None), ("x", None), (0, None)]
)  # fmt: skip
def test_an_instant_is_only_what_can_be_one(timestamp: object, gone_at: float | None) -> None:
    reply = answered(410, "Unregistered", timestamp=timestamp)
    assert meaning_of(reply, topic_accepted=True) == Unregistered("Unregistered (410)", gone_at)


def test_apples_own_wait_is_heard() -> None:
    reply = replace(answered(503, "ServiceUnavailable"), headers={"retry-after": "60"})
    assert meaning_of(reply, topic_accepted=True) == Failed("ServiceUnavailable (503)", 60.0)


def test_a_page_under_a_200_is_not_apples() -> None:
    page = Reply(phase=Phase.ANSWERED, status=200, body=b"<html>")
    assert meaning_of(page, topic_accepted=True) == Uncertain("answered 200, but not as APNs does")
    assert meaning_of(replace(page, body=b""), topic_accepted=True) == Delivered()


def test_a_delivery_log_is_found_by_apples_id_where_there_is_one() -> None:
    headers = {"apns-id": "ours", "apns-unique-id": "theirs"}
    reply = Reply(phase=Phase.ANSWERED, status=200, headers=headers)
    assert meaning_of(reply, topic_accepted=True) == Delivered("theirs")


@pytest.mark.parametrize(
    ("phase", "reason", "kind"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent),
        (Phase.NOT_SENT, Trouble.GONE_AWAY, NotSent),
        (Phase.NOT_SENT, Trouble.STREAM_REFUSED, NotSent),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain),
        (Phase.UNCERTAIN, Trouble.CONNECTION_LOST, Uncertain),
    ],
)
def test_what_no_answer_means(phase: Phase, reason: Trouble, kind: type) -> None:
    assert isinstance(meaning_of(Reply(phase=phase, reason=reason), topic_accepted=True), kind)


# --- settings


GOOD = {"topic": TOPIC, "team_id": TEAM_ID, "key_id": KEY_ID}


def test_a_channel_has_its_sender() -> None:
    on = Stage()
    built = apns(a_channel(sender="apns", settings=GOOD), EC_PEM, on.transport)
    assert built._origin.host == "api.push.apple.com"
    sandbox = {**GOOD, "environment": "sandbox"}
    built = apns(a_channel(sender="apns", settings=sandbox), EC_PEM, on.transport)
    assert built._origin.host == "api.sandbox.push.apple.com"


@pytest.mark.parametrize("secret", [None, "", "hunter2", RSA_PEM])
def test_a_secret_that_is_no_key_is_refused(secret: str | None) -> None:
    with pytest.raises(BadKey):
        apns(a_channel(sender="apns", settings=GOOD), secret, Stage().transport)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {**GOOD, "team_id": "short"},
        {**GOOD, "topic": "com.example\r\nx: y"},
        {**GOOD, "environment": "staging"},
        {**GOOD, "push_type": "background"},
        {**GOOD, "ttl_seconds": -1},
        {**GOOD, "tpoic": "x"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, ApnsSettings)


def test_another_push_type_is_no_background_push() -> None:
    content = content_of({"data": {"call": 1}}, KEY, background=False)
    assert content == {"aps": {}, "call": 1, "fencepost_key": str(KEY)}
