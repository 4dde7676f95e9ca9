"""Web Push: what reaches a push service and its browser, and what the service's answers mean."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.doubt import SendIt, advise
from fencepost.core.notification import ChannelId, Claimed, Fence, NotificationId, OnUncertain
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
from fencepost.ports import NamesHosts, Prepared
from fencepost.senders.collapse import topic_of
from fencepost.senders.jwt import BadKey
from fencepost.senders.registry import fault_of, kind_of
from fencepost.senders.standing import Blame
from fencepost.senders.trouble import Trouble
from fencepost.senders.ttl import ttl_of
from fencepost.senders.vapid import Vapid
from fencepost.senders.webpush import WebPush, WebPushSettings, allowed, webpush
from fencepost.senders.webpush_answers import meaning_of
from tests.engine.fakes import channel as any_channel
from tests.senders.peers import Peer
from tests.senders.push_receiver import Browser, b64url, public_point, read_vapid
from tests.senders.stage import HOST, Stage, never, stage

VAPID_KEY = ec.generate_private_key(ec.SECP256R1())
VAPID_SECRET = b64url(VAPID_KEY.private_numbers().private_value.to_bytes(32, "big"))
SUBJECT = "mailto:push@sender.test"
BROWSER = Browser(ec.generate_private_key(ec.SECP256R1()), bytes(range(16)))
ENDPOINT = f"https://{HOST}/push/JzLQ3raZ"
KEY = uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
NOW = 1_700_000_000.0
CLAIMED = Claimed(
    id=NotificationId(1),
    fence=Fence(1),
    channel=ChannelId(1),
    recipient=BROWSER.subscription(ENDPOINT),
    payload={"title": "Hallo 😀", "body": "Es geht los", "data": {"order": 7}},
    idempotency_key=KEY,
    attempts=1,
    interruptions=0,
    doubt=False,
    age_seconds=0.0,
    first_attempt_age_seconds=None,
    first_digest=None,
    evidence=None,
    expires_in_seconds=None,
    lease_left_seconds=20.0,
    on_uncertain=None,
)


@dataclass
class PushService:
    """A push service as RFC 8030 and 8292 have it, and the browser behind it that shows what it decrypts by tag."""

    audience: str = f"https://{HOST}"
    takes: bytes = public_point(VAPID_KEY.public_key())
    then: Callable[[Peer], None] | None = (
        None  # instead of an answer, once it has stored the message
    )
    waiting: dict[tuple[str, str], bytes] = field(default_factory=dict)  # by path and topic
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    received: int = 0

    async def script(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            status = self._status(asked.headers, asked.body)
            if status == 201:
                self.received += 1
                self.waiting[asked.headers[":path"], asked.headers["topic"]] = asked.body
            if status == 201 and self.then is not None:
                self.then(peer)
                return
            await peer.answer(asked, status, b"", (("location", f"https://{HOST}/message/1"),))

    def _status(self, headers: dict[str, str], body: bytes) -> int:
        if headers[":method"] != "POST" or headers["content-encoding"] != "aes128gcm":
            return 400
        if not headers.get("ttl", "").isdigit() or len(headers.get("topic", "")) > 32:
            return 400
        if headers["urgency"] not in ("very-low", "low", "normal", "high"):
            return 400
        if len(body) > 4096:
            return 413
        read = read_vapid(headers["authorization"])
        ends = read.claims["exp"]
        in_time = isinstance(ends, int) and NOW < ends <= NOW + 86400
        good = in_time and read.claims["aud"] == self.audience and read.key == b64url(self.takes)
        return 201 if good else 403

    def browser_wakes(self) -> None:
        """It fetches what waits, decrypts, and shows one notification a tag."""
        for body in self.waiting.values():
            read = json.loads(BROWSER.read(body))
            self.shown[read["tag"]] = read
        self.waiting.clear()


def sender(on: Stage, **settings: Any) -> WebPush:
    known = {"subject": SUBJECT, "allow_private_networks": True, **settings}
    vapid = Vapid(VAPID_KEY, SUBJECT, now=lambda: NOW)
    return WebPush(on.transport, WebPushSettings(**known), vapid)


def prepared(push: WebPush, claimed: Claimed = CLAIMED) -> Prepared:
    message = push.prepare(claimed)
    assert isinstance(message, Prepared)
    return message


async def outcome(push: WebPush, claimed: Claimed = CLAIMED) -> Outcome:
    reply = await push.send(claimed, prepared(push, claimed), timeout_seconds=10)
    return push.classify(claimed, reply)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_a_browser_reads_what_its_push_service_could_not(protocol: str) -> None:
    async with stage() as on:
        service = PushService()
        server = await on.serve(service.script, protocol=protocol)
        assert await outcome(sender(on)) == Delivered()
        service.browser_wakes()
        assert service.shown == {
            str(KEY): {
                "tag": str(KEY),
                "title": "Hallo 😀",
                "body": "Es geht los",
                "data": {"order": 7},
            }
        }
        asked = server.log.requests[0]
        assert asked.headers[":path"] == "/push/JzLQ3raZ"
        assert asked.headers["content-type"] == "application/octet-stream"
        assert asked.headers["ttl"] == "2419200"
        assert asked.headers["urgency"] == "normal"
        assert b"Hallo" not in asked.body


async def test_a_key_that_is_not_the_subscriptions_is_refused_by_the_service() -> None:
    async with stage() as on:
        other = public_point(ec.generate_private_key(ec.SECP256R1()).public_key())
        await on.serve(PushService(takes=other).script)
        assert await outcome(sender(on)) == Failed("answered 403")


async def test_the_largest_message_passes_and_one_byte_more_never_leaves() -> None:
    """D51: bytes of the encoded message, not characters."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on)
        frame = len(json.dumps({"tag": str(KEY), "title": ""}, separators=(",", ":")))
        fits = replace(CLAIMED, payload={"title": "x" * (3993 - frame)})
        assert await outcome(push, fits) == Delivered()
        assert len(server.log.requests[0].body) == 4096
        more = replace(CLAIMED, payload={"title": "x" * (3994 - frame)})
        assert push.prepare(more) == Rejected("message has 3994 bytes, the provider takes 3993")
        emoji = replace(CLAIMED, payload={"title": "😀" * 1100})
        assert push.prepare(emoji) == Rejected(
            f"message has {frame + 4400} bytes, the provider takes 3993"
        )


# --- a repeat


async def test_a_lost_answer_is_doubt_and_its_repeat_is_shown_once() -> None:
    """Stored and then cut: nobody knows. The repeat replaces what waits, and on the screen what is shown."""
    async with stage() as on:
        service = PushService(then=lambda peer: peer.reset())
        await on.serve(service.script)
        push = sender(on)
        first = await outcome(push)
        assert isinstance(first, Uncertain)
        service.then = None
        again = replace(CLAIMED, attempts=2, doubt=True, first_attempt_age_seconds=30.0)
        resends = any_channel(on_uncertain=OnUncertain.RESEND)
        assert advise(again, resends, push.facility) == SendIt()
        assert await outcome(push, again) == Delivered()
        assert service.received == 2
        assert len(service.waiting) == 1
        service.browser_wakes()
        assert await outcome(push, again) == Delivered()  # a third, after the browser has shown it
        service.browser_wakes()
        assert len(service.shown) == 1


async def test_every_attempt_says_the_same_in_another_cipher() -> None:
    """G7: encryption is of the attempt; the digest is over what the recipient reads, not over time left."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on)
        later = replace(CLAIMED, attempts=2, expires_in_seconds=77.9)
        one, two = prepared(push), prepared(push, later)
        assert one.digest == two.digest
        assert len(one.digest) == 16
        await push.send(CLAIMED, one, timeout_seconds=10)
        await push.send(later, two, timeout_seconds=10)
        first, second = server.log.requests
        assert first.body != second.body
        assert BROWSER.read(first.body) == BROWSER.read(second.body)
        assert first.headers["topic"] == second.headers["topic"]
        assert first.headers["authorization"] == second.headers["authorization"]
        assert (first.headers["ttl"], second.headers["ttl"]) == ("2419200", "77")


async def test_what_it_offers_against_duplicates() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility(collapses=True)


async def test_two_services_are_each_told_their_own_audience() -> None:
    """D40: send to A, then to B; B's token speaks of B."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on)
        for host in (HOST, f"{HOST}:8443", HOST):
            await outcome(
                push, replace(CLAIMED, recipient=BROWSER.subscription(f"https://{host}/"))
            )
        told = [read_vapid(asked.headers["authorization"]) for asked in server.log.requests]
        audiences = [each.claims["aud"] for each in told]
        assert audiences == [f"https://{HOST}", f"https://{HOST}:8443", f"https://{HOST}"]


# --- the message


async def read_by_browser(payload: dict[str, Any]) -> dict[str, Any]:
    async with stage() as on:
        await on.serve((service := PushService()).script)
        assert await outcome(sender(on), replace(CLAIMED, payload=payload)) == Delivered()
        service.browser_wakes()
        (shown,) = service.shown.values()
        return shown


async def test_the_vocabulary_reaches_the_service_worker() -> None:
    shown = await read_by_browser(
        {
            "title": "t",
            "body": "b",
            "image": "https://a.test/i.png",
            "icon": "https://a.test/c.png",
            "url": "https://a.test/",
            "silent": True,
            "badge": 3,
            "collapse": "order-7",
            "data": {"a": [1, None]},
            "html": "<b>",
            "sound": "ding",
            "thread": "x",
            "category": "y",
            "type": "order.left",
            "urgency": "high",
            "raw": {"fcm": {"secret": 1}},
        }
    )
    assert shown == {
        "title": "t",
        "body": "b",
        "image": "https://a.test/i.png",
        "icon": "https://a.test/c.png",
        "url": "https://a.test/",
        "silent": True,
        "app_badge": 3,
        "tag": "order-7",
        "data": {"a": [1, None]},
    }


async def test_a_raw_block_is_laid_over_it() -> None:
    raw = {
        "webpush": {"title": "other", "body": None, "data": {"b": 2}, "requireInteraction": True}
    }
    shown = await read_by_browser({"title": "t", "body": "b", "data": {"a": 1}, "raw": raw})
    assert shown == {
        "tag": str(KEY),
        "title": "other",
        "data": {"a": 1, "b": 2},
        "requireInteraction": True,
    }


@pytest.mark.parametrize("urgency", ["low", "normal", "high"])
async def test_urgency_is_the_services_own_word(urgency: str) -> None:
    async with stage() as on:
        server = await on.serve(PushService().script)
        await outcome(sender(on), replace(CLAIMED, payload={"urgency": urgency}))
        assert server.log.requests[0].headers["urgency"] == urgency


@pytest.mark.parametrize("collapse", ["a", "order-7", "é" * 32, "x" * 64])
def test_a_topic_is_what_every_service_takes(collapse: str) -> None:
    """RFC 8030: at most 32 characters of base64url. Apple decodes them: a length of 4n + 1 would be refused."""
    topic = topic_of(collapse)
    assert len(topic) == 32
    assert not set(topic) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert topic == topic_of(collapse) != topic_of(collapse + "2")


@pytest.mark.parametrize(
    ("left", "longest", "ttl"),
    [
        (None, 2_419_200, 2_419_200),
        (None, 60, 60),
        (59.99, 2_419_200, 59),  # never a second more than is left
        (0.4, 2_419_200, 0),  # now or never
        (-1.0, 2_419_200, 0),
        (1e9, 2_419_200, 2_419_200),
    ],
)
def test_the_time_that_is_left_is_the_services_ttl(
    left: float | None, longest: int, ttl: int
) -> None:
    assert ttl_of(left, longest) == ttl


@pytest.mark.parametrize(("left", "policy"), [(None, "cache"), (0.2, "no-cache")])
async def test_edge_is_told_twice_whether_to_keep_it(
    left: float | None, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WNS refuses a TTL that its own header contradicts; others are not told."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on)
        claimed = replace(CLAIMED, expires_in_seconds=left)
        await push.send(claimed, prepared(push, claimed), timeout_seconds=10)
        monkeypatch.setattr("fencepost.senders.webpush.WINDOWS", f".{HOST.partition('.')[2]}")
        await push.send(claimed, prepared(push, claimed), timeout_seconds=10)
        others, edge = server.log.requests
        assert "x-wns-cache-policy" not in others.headers
        assert edge.headers["x-wns-cache-policy"] == policy


# --- who may be called


@pytest.mark.parametrize(
    ("host", "patterns", "may"),
    [
        ("push.test", (), True),
        ("push.test", ("push.test",), True),
        ("a.push.test", ("push.test",), False),
        ("a.push.test", ("*.push.test",), True),
        ("a.b.push.test", ("*.push.test",), True),
        ("push.test", ("*.push.test",), False),
        ("evilpush.test", ("*.push.test", "push.test"), False),
        ("push.test.evil", ("*.push.test", "push.test"), False),
    ],
)
def test_hosts_that_are_allowed(host: str, patterns: tuple[str, ...], may: bool) -> None:
    assert allowed(host, patterns) is may


async def test_a_subscription_elsewhere_is_rejected_before_anything_is_dialled() -> None:
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on, allowed_hosts=("fcm.googleapis.com", "*.push.apple.com"))
        assert push.prepare(CLAIMED) == Rejected(
            "recipient's push service is not among allowed_hosts"
        )
        assert on.asked_resolver == server.log.connections == 0


async def test_a_subscription_into_a_private_network_is_rejected() -> None:
    """D54: whoever makes subscriptions up must not reach what only this machine may."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        assert isinstance(await outcome(sender(on, allow_private_networks=False)), Rejected)
        assert server.log.connections == 0


async def test_a_redirect_is_never_followed() -> None:
    async def redirects(peer: Peer) -> None:
        location = (("location", "http://169.254.169.254/"),)
        await peer.answer(await peer.request(), 302, b"", location)
        await never()

    async with stage() as on:
        server = await on.serve(redirects)
        assert await outcome(sender(on)) == Rejected("answered 302")
        assert server.log.connections == 1


async def test_hosts_in_trouble_are_told_apart() -> None:
    async with stage() as on:
        push = sender(on)
        assert isinstance(push, NamesHosts)
        assert push.origin_of(CLAIMED.recipient) == HOST
        assert push.origin_of(BROWSER.subscription("https://push.test:8443/p")) == "push.test:8443"
        assert push.origin_of("not json") is None


@pytest.mark.parametrize("recipient", ["", "not json", "{}", '{"endpoint": "http://a.test"}'])
async def test_what_is_no_subscription_is_rejected(recipient: str) -> None:
    async with stage() as on:
        made = sender(on).prepare(replace(CLAIMED, recipient=recipient))
        assert isinstance(made, Rejected)
        assert made.reason.startswith("recipient is no subscription: ")


async def test_a_payload_without_json_form_is_rejected_without_being_quoted() -> None:
    async with stage() as on:
        payload = {"data": {"secret": float("nan")}}
        made = sender(on).prepare(replace(CLAIMED, payload=payload))
        assert made == Rejected("payload has no JSON form")


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        push = sender(on)
        shown = repr(prepared(push)) + repr(push) + repr(prepared(push).request)
        keys = json.loads(CLAIMED.recipient)["keys"].values()
        for secret in ("JzLQ3raZ", "Hallo", "Es geht los", VAPID_SECRET, *keys):
            assert secret not in shown


# --- the table


def answered(status: int, body: bytes = b"", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(phase=Phase.ANSWERED, status=status, headers=named, body=body)


APPLE_SAYS = b'{"reason":"%s"}'
MOZILLA_SAYS = (
    b'{"code":401,"errno":109,"error":"Unauthorized","message":"VAPID public key mismatch"}'
)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (answered(201), Delivered()),
        (answered(200), Delivered()),
        (answered(202), Delivered()),  # D58
        (answered(201, apns_id="A-1"), Delivered("A-1")),
        (answered(201, x_wns_msg_id="W-1"), Delivered("W-1")),
        (answered(400), Rejected("answered 400")),
        (
            answered(400, APPLE_SAYS % b"BadWebPushTopic"),
            Rejected("answered 400 BadWebPushTopic"),
        ),
        (
            answered(400, APPLE_SAYS % b"VapidPkHashMismatch"),
            Failed("answered 400 VapidPkHashMismatch"),
        ),
        (answered(400, b'{"errno":113}'), Rejected("answered 400 errno 113")),
        (answered(401, MOZILLA_SAYS), Failed("answered 401 errno 109")),
        (answered(403, APPLE_SAYS % b"BadJwtToken"), Failed("answered 403 BadJwtToken")),
        (answered(403, b"the VAPID credentials do not correspond"), Failed("answered 403")),
        (answered(404), Unregistered("answered 404")),
        (answered(410, b'{"errno":103}'), Unregistered("answered 410 errno 103")),
        (
            answered(406, x_wns_status="appthrottled", retry_after="900"),
            Throttled("answered 406 appthrottled", 900.0, channel_wide=False),
        ),
        (answered(429, retry_after="119"), Throttled("answered 429", 119.0, channel_wide=False)),
        (answered(429, retry_after="-5"), Throttled("answered 429", None, channel_wide=False)),
        (answered(413), Rejected("answered 413")),
        (answered(301), Rejected("answered 301")),
        (answered(307), Rejected("answered 307")),
        (answered(405), Rejected("answered 405")),
        (answered(408), Failed("answered 408")),
        (answered(500, b'{"errno":999}'), Failed("answered 500 errno 999")),
        (answered(502, b"<html>"), Failed("answered 502")),
        (answered(503, b'{"errno":201}', retry_after="5"), Failed("answered 503 errno 201", 5.0)),
        (answered(504), Uncertain("answered 504")),
        (answered(101), Failed("answered 101")),
    ],
)
def test_what_an_answer_means(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply, Blame.NOBODY_KNOWS, attempts=9) == outcome


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_service_that_refuses_one_after_the_other_means_our_key(status: int) -> None:
    assert meaning_of(answered(status), Blame.OURS, attempts=1) == CredentialFailure(
        f"answered {status}, to one subscription after the other"
    )


@pytest.mark.parametrize(
    ("reply", "attempts", "outcome"),
    [
        (answered(403), 1, Failed("answered 403")),
        (answered(403), 2, Failed("answered 403")),
        (answered(401), 2, Failed("answered 401")),
        (answered(400), 3, Rejected("answered 400")),  # about the message
        (
            answered(400, APPLE_SAYS % b"VapidPkHashMismatch"),
            3,
            Unregistered(
                "answered 400 VapidPkHashMismatch, 3 times, while others are accepted", guarded=True
            ),
        ),
        (
            answered(401),
            4,
            Unregistered("answered 401, 4 times, while others are accepted", guarded=True),
        ),
    ],
)
def test_one_subscription_among_good_ones(reply: Reply, attempts: int, outcome: Outcome) -> None:
    assert meaning_of(reply, Blame.ADDRESS, attempts=attempts) == outcome


@pytest.mark.parametrize(
    ("phase", "reason", "outcome"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent("connect: why")),
        (Phase.NOT_SENT, Trouble.STREAM_REFUSED, NotSent("stream_refused: why")),
        (Phase.NOT_SENT, Trouble.ADDRESS_FORBIDDEN, Rejected("address_forbidden: why")),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain("timeout: why")),
    ],
)
async def test_what_no_answer_means(phase: Phase, reason: Trouble, outcome: Outcome) -> None:
    async with stage() as on:
        reply = Reply(phase=phase, reason=reason.value, error="why")
        assert sender(on).classify(CLAIMED, reply) == outcome


def test_a_providers_sentence_never_reaches_the_ledger() -> None:
    quoting = answered(400, b'{"reason":"cannot read Hallo, Frau M\xc3\xbcller"}')
    assert meaning_of(quoting, Blame.NOBODY_KNOWS, attempts=1) == Rejected("answered 400")


# --- one endpoint, or all of them


def to(path: str, attempts: int = 1) -> Claimed:
    recipient = BROWSER.subscription(f"https://{HOST}/push/{path}")
    return replace(CLAIMED, recipient=recipient, attempts=attempts)


class Refusing:
    """A service with subscriptions that are dead the way Apple says it: 403."""

    def __init__(self, *dead: str) -> None:
        self.dead = {f"/push/{path}" for path in dead}

    async def script(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            await peer.answer(asked, 403 if asked.headers[":path"] in self.dead else 201)


async def test_an_endpoint_refused_three_times_while_others_are_accepted_is_gone() -> None:
    """D44: Apple answers 403 for a dead subscription. It is judged beside its siblings, and guarded."""
    async with stage() as on:
        await on.serve(Refusing("dead").script)
        push = sender(on)
        assert await outcome(push, to("alive")) == Delivered()
        for attempts in (1, 2):
            assert await outcome(push, to("dead", attempts)) == Failed("answered 403")
            assert await outcome(push, to("alive-too")) == Delivered()
        gone = await outcome(push, to("dead", 3))
        assert gone == Unregistered(
            "answered 403, 3 times, while others are accepted", guarded=True
        )


async def test_a_key_that_no_endpoint_takes_stops_the_channel_and_no_subscription() -> None:
    async with stage() as on:
        await on.serve(Refusing("a", "b", "c").script)
        push = sender(on)
        assert await outcome(push, to("a")) == Failed("answered 403")
        assert await outcome(push, to("b")) == Failed("answered 403")
        assert await outcome(push, to("c")) == CredentialFailure(
            "answered 403, to one subscription after the other"
        )


async def test_one_subscription_that_anybody_may_have_made_up_never_stops_the_channel() -> None:
    async with stage() as on:
        await on.serve(Refusing("made-up").script)
        push = sender(on)
        for attempts in range(1, 9):
            assert await outcome(push, to("made-up", attempts)) == Failed("answered 403")
        assert await outcome(push, to("alive")) == Delivered()


# --- settings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"subject": "push@sender.test"},
        {"subject": "http://sender.test"},
        {"subject": "mailto:"},
        {"subject": SUBJECT, "allowed_hosts": ["https://push.test"]},
        {"subject": SUBJECT, "allowed_hosts": ["*"]},
        {"subject": SUBJECT, "ttl_seconds": -1},
        {"subject": SUBJECT, "ttl_seconds": 2_419_201},
        {"subject": SUBJECT, "sujet": "x"},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, WebPushSettings)


@pytest.mark.parametrize(
    "settings",
    [
        {"subject": SUBJECT},
        {"subject": "https://sender.test/contact", "allowed_hosts": ["*.push.apple.com", "a.test"]},
        {"subject": SUBJECT, "ttl_seconds": 0},
    ],
)
def test_good_settings_are_taken(settings: dict[str, Any]) -> None:
    assert fault_of("webpush", settings, "env:VAPID") is None


async def test_the_registry_knows_it_and_its_secret_is_needed() -> None:
    assert kind_of("webpush").needs_secret
    channel: Channel = any_channel(sender="webpush", settings={"subject": SUBJECT})
    async with stage() as on:
        assert webpush(channel, VAPID_SECRET, on.transport).facility.collapses
        for secret in (None, "", "no key"):
            with pytest.raises(BadKey):
                webpush(channel, secret, on.transport)
