"""Expo: what its push service gets, what its tickets and receipts mean, and what is lost with an answer."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fencepost.core.channel import Facility
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
from fencepost.ports import Prepared
from fencepost.senders.expo import BadToken, Expo, ExpoSettings, expo
from fencepost.senders.expo_answers import meaning_of, receipts_in
from fencepost.senders.registry import fault_of, kind_of
from fencepost.senders.trouble import Trouble
from tests.engine.fakes import channel as any_channel
from tests.senders.peers import Peer
from tests.senders.stage import HOST, Stage, beat, stage

TOKEN = "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"
ACCESS = "access-token-secret"
RECEIPTS = "/--/api/v2/push/getReceipts"
KEY = uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
CLAIMED = Claimed(
    id=NotificationId(1),
    fence=Fence(1),
    channel=ChannelId(1),
    recipient=TOKEN,
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
    """Expo's API as its documentation has it, and the device behind it: one notification a tag."""

    token: str | None = ACCESS
    then: Callable[[Peer], None] | None = None  # instead of an answer, once it has taken a message
    tickets: dict[str, dict[str, Any]] = field(default_factory=dict)  # receipts, by ticket id
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked_for: list[list[str]] = field(default_factory=list)
    answered: int = 0
    mute: bool = False  # answers no question for receipts until it is no more

    async def script(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            if asked.headers[":path"] == RECEIPTS:
                self.asked_for.append(json.loads(asked.body)["ids"])
                while self.mute:
                    await beat()
            status, body = self._answer(asked.headers, json.loads(asked.body))
            if status == 200 and "id" in body.get("data", {}) and self.then is not None:
                self.then(peer)
                return
            await peer.answer(asked, status, json.dumps(body).encode())
            self.answered += 1

    def _answer(self, headers: dict[str, str], said: Any) -> tuple[int, dict[str, Any]]:
        if headers[":method"] != "POST" or headers["content-type"] != "application/json":
            return 400, {"errors": [{"code": "VALIDATION_ERROR", "message": "…"}]}
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"errors": [{"code": "UNAUTHORIZED", "message": "…"}]}
        if headers[":path"] == RECEIPTS:
            found = {id: self.tickets[id] for id in said["ids"] if id in self.tickets}
            return 200, {"data": found}
        assert headers[":path"] == "/--/api/v2/push/send"
        if not isinstance(said.get("ttl"), int) or not isinstance(said.get("to"), str):
            return 400, {"errors": [{"code": "VALIDATION_ERROR", "message": "…"}]}
        if "gone" in said["to"]:
            message = f'"{said["to"]}" is not a registered push notification recipient'
            details = {"error": "DeviceNotRegistered"}
            return 200, {"data": {"status": "error", "message": message, "details": details}}
        self.taken.append(said)
        self.shown[said["tag"]] = said
        return 200, {"data": {"status": "ok", "id": f"T-{len(self.taken)}"}}


def sender(on: Stage, token: str | None = ACCESS, **settings: Any) -> Expo:
    known = {"endpoint": f"{on.scheme}://{HOST}", **settings}
    return Expo(on.transport, ExpoSettings(**known), token)


def prepared(push: Expo, claimed: Claimed = CLAIMED) -> Prepared:
    message = push.prepare(claimed)
    assert isinstance(message, Prepared)
    return message


async def outcome(push: Expo, claimed: Claimed = CLAIMED) -> Outcome:
    reply = await push.send(claimed, prepared(push, claimed), timeout_seconds=10)
    return push.classify(claimed, reply)


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_one_message_in_one_request_and_its_ticket(protocol: str) -> None:
    async with stage() as on:
        service = PushService()
        server = await on.serve(service.script, protocol=protocol)
        assert await outcome(sender(on)) == Delivered("T-1", receipt_due=True)
        assert service.taken == [
            {
                "to": TOKEN,
                "ttl": 2_419_200,
                "title": "Hallo 😀",
                "body": "Es geht los",
                "data": {"order": 7},
                "collapseId": str(KEY),
                "tag": str(KEY),
            }
        ]
        asked = server.log.requests[0]
        assert "Hallo 😀".encode() in asked.body  # unescaped
        assert asked.headers["accept-encoding"] == "identity"


async def test_a_project_without_enhanced_security_wants_no_token() -> None:
    async with stage() as on:
        server = await on.serve(PushService(token=None).script)
        assert isinstance(await outcome(sender(on, None)), Delivered)
        assert "authorization" not in server.log.requests[0].headers


async def test_a_wrong_access_token_is_the_channels_fault() -> None:
    async with stage() as on:
        await on.serve(PushService().script)
        assert await outcome(sender(on, "other")) == CredentialFailure("answered 401 UNAUTHORIZED")


async def test_a_device_that_is_gone_is_told_by_the_ticket_and_takes_nobody_along() -> None:
    """D1: one dead token among good ones; every message has its own request and its own end."""
    async with stage() as on:
        service = PushService()
        server = await on.serve(service.script)
        push = sender(on)
        dead = replace(CLAIMED, recipient="ExponentPushToken[gone]")
        outcomes = [await outcome(push, each) for each in (CLAIMED, dead, CLAIMED)]
        assert outcomes == [
            Delivered("T-1", receipt_due=True),
            Unregistered("ticket: DeviceNotRegistered"),
            Delivered("T-2", receipt_due=True),
        ]
        assert len(server.log.requests) == 3


# --- a repeat


async def test_a_lost_answer_is_doubt_and_its_repeat_replaces_it_on_the_screen() -> None:
    async with stage() as on:
        service = PushService(then=lambda peer: peer.reset())
        await on.serve(service.script)
        push = sender(on)
        assert isinstance(await outcome(push), Uncertain)
        assert await push.ask(CLAIMED, timeout_seconds=1) is None  # its ticket is lost with it
        service.then = None
        again = replace(CLAIMED, attempts=2, doubt=True, first_attempt_age_seconds=30.0)
        resends = any_channel(on_uncertain=OnUncertain.RESEND)
        assert advise(again, resends, push.facility) == SendIt()
        assert await outcome(push, again) == Delivered("T-2", receipt_due=True)
        assert len(service.taken) == 2
        assert len(service.shown) == 1


async def test_every_attempt_says_the_same_with_the_time_that_is_left() -> None:
    async with stage() as on:
        service = PushService()
        await on.serve(service.script)
        push = sender(on)
        first, later = (replace(CLAIMED, expires_in_seconds=left) for left in (600.0, 77.9))
        assert prepared(push, first).digest == prepared(push, later).digest
        assert len(prepared(push).digest) == 16
        await outcome(push, first)
        await outcome(push, later)
        assert [each.pop("ttl") for each in service.taken] == [600, 77]
        assert service.taken[0] == service.taken[1]


async def test_what_it_offers_against_duplicates() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility(collapses=True)


# --- the message


async def taken_by_expo(payload: dict[str, Any]) -> dict[str, Any]:
    async with stage() as on:
        service = PushService()
        await on.serve(service.script)
        assert isinstance(await outcome(sender(on), replace(CLAIMED, payload=payload)), Delivered)
        return service.taken[0]


async def test_the_vocabulary_is_taken_as_far_as_expo_knows_it() -> None:
    taken = await taken_by_expo(
        {
            "title": "t",
            "body": "b",
            "image": "https://a.test/i.png",
            "icon": "bell",
            "url": "/orders/7",
            "sound": "ding.wav",
            "badge": 0,
            "collapse": "order-7",
            "category": "orders",
            "urgency": "high",
            "data": {"order": 7},
            "html": "<b>",
            "thread": "x",
            "type": "order.left",
            "silent": False,
            "raw": {"fcm": {"secret": 1}},
        }
    )
    assert taken == {
        "to": TOKEN,
        "ttl": 2_419_200,
        "title": "t",
        "body": "b",
        "richContent": {"image": "https://a.test/i.png"},
        "icon": "bell",
        "data": {"url": "/orders/7", "order": 7},
        "sound": "ding.wav",
        "badge": 0,
        "collapseId": "order-7",
        "tag": "order-7",
        "categoryId": "orders",
        "channelId": "orders",
        "priority": "high",
    }


async def test_what_no_header_can_hold_is_collapsed_by_its_hash() -> None:
    taken = await taken_by_expo({"collapse": "é" * 32})
    assert taken["collapseId"] == taken["tag"]
    assert taken["collapseId"].isascii()
    assert len(taken["collapseId"]) == 32


async def test_a_silent_one_shows_nothing() -> None:
    payload = {
        "title": "t",
        "body": "b",
        "sound": "s",
        "image": "i",
        "data": {"a": 1},
        "silent": True,
    }
    taken = await taken_by_expo(payload)
    assert taken == {
        "to": TOKEN,
        "ttl": 2_419_200,
        "data": {"a": 1},
        "_contentAvailable": True,
        "collapseId": str(KEY),
        "tag": str(KEY),
    }


async def test_a_raw_block_is_laid_over_it_but_never_over_the_recipient() -> None:
    raw = {"title": "other", "subtitle": "s", "data": {"b": 2}, "to": "ExponentPushToken[other]"}
    taken = await taken_by_expo({"title": "t", "body": "b", "data": {"a": 1}, "raw": {"expo": raw}})
    assert taken == {
        "to": TOKEN,
        "ttl": 2_419_200,
        "title": "other",
        "subtitle": "s",
        "body": "b",
        "data": {"a": 1, "b": 2},
        "collapseId": str(KEY),
        "tag": str(KEY),
    }


@pytest.mark.parametrize(
    ("urgency", "priority"), [("low", "normal"), ("normal", "default"), ("high", "high")]
)
async def test_urgency_is_expos_priority(urgency: str, priority: str) -> None:
    assert (await taken_by_expo({"urgency": urgency}))["priority"] == priority


async def test_the_limit_counts_encoded_bytes_and_nothing_too_large_leaves() -> None:
    """D51."""
    async with stage() as on:
        server = await on.serve(PushService().script)
        push = sender(on)
        frame = len(
            json.dumps(
                {"collapseId": str(KEY), "tag": str(KEY), "title": ""}, separators=(",", ":")
            )
        )
        fits = replace(CLAIMED, payload={"title": "x" * (4096 - frame)})
        assert isinstance(await outcome(push, fits), Delivered)
        more = replace(CLAIMED, payload={"title": "x" * (4097 - frame)})
        assert push.prepare(more) == Rejected("message has 4097 bytes, the provider takes 4096")
        emoji = replace(CLAIMED, payload={"title": "😀" * 1100})
        assert isinstance(push.prepare(emoji), Rejected)
        assert len(server.log.requests) == 1


@pytest.mark.parametrize(
    ("recipient", "good"),
    [
        (TOKEN, True),
        ("ExpoPushToken[abc]", True),
        ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", True),
        ("", False),
        ("ExponentPushToken[]", False),
        ("ExponentPushToken[abc", False),
        ("ExponentPushToken[abc]x", False),
        ("ExponentPushToken[a b]", False),
        ("fcm-token", False),
    ],
)
async def test_who_can_be_a_recipient(recipient: str, good: bool) -> None:
    async with stage() as on:
        made = sender(on).prepare(replace(CLAIMED, recipient=recipient))
        assert (
            isinstance(made, Prepared)
            if good
            else made == Rejected("recipient is no Expo push token")
        )


async def test_a_payload_without_json_form_is_rejected_without_being_quoted() -> None:
    async with stage() as on:
        made = sender(on).prepare(replace(CLAIMED, payload={"data": {"secret": float("nan")}}))
        assert made == Rejected("payload has no JSON form")


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        push = sender(on)
        shown = repr(prepared(push)) + repr(push) + repr(prepared(push).request)
        for secret in ("xxxxxx", "Hallo", "Es geht los", ACCESS):
            assert secret not in shown


# --- tickets


def answered(status: int, body: object = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = b"" if body is None else json.dumps(body).encode()
    return Reply(phase=Phase.ANSWERED, status=status, headers=named, body=text)


def ticket(error: str | None = None, **more: Any) -> dict[str, Any]:
    details = {} if error is None else {"details": {"error": error}}
    return {"data": {"status": "error", "message": "Hallo quoted", **details, **more}}


def refusal(code: str) -> dict[str, Any]:
    return {"errors": [{"code": code, "message": "Hallo quoted"}]}


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (answered(200, {"data": {"status": "ok", "id": "T"}}), Delivered("T", receipt_due=True)),
        (answered(200, {"data": [{"status": "ok", "id": "T"}]}), Delivered("T", receipt_due=True)),
        (answered(200, {"data": {"status": "ok"}}), Delivered()),
        (answered(200, {"data": {"status": "ok", "id": ""}}), Delivered()),
        (answered(200, ticket("DeviceNotRegistered")), Unregistered("ticket: DeviceNotRegistered")),
        (answered(200, ticket("MessageTooBig")), Rejected("ticket: MessageTooBig")),
        (answered(200, ticket("DeveloperError")), Rejected("ticket: DeveloperError")),
        (answered(200, ticket()), Rejected("ticket: an error without a code")),
        (
            answered(200, ticket("MessageRateExceeded")),
            Throttled("ticket: MessageRateExceeded", channel_wide=False),
        ),
        (
            answered(200, ticket("InvalidCredentials")),
            CredentialFailure("ticket: InvalidCredentials"),
        ),
        (answered(200, ticket("MismatchSenderId")), CredentialFailure("ticket: MismatchSenderId")),
        (answered(200, ticket("ExpoError")), Uncertain("ticket: ExpoError")),
        (answered(200, ticket("ProviderError")), Uncertain("ticket: ProviderError")),
        (answered(200, ticket("SomethingNew")), Failed("ticket: SomethingNew")),
        (answered(200, ticket("Hallo Frau M")), Failed("ticket: an unknown error")),
        (answered(200), Uncertain("answered 200 without a ticket that can be read")),
        (
            answered(200, {"data": [{"status": "ok", "id": "A"}, {"status": "ok", "id": "B"}]}),
            Uncertain("answered 200 without a ticket that can be read"),
        ),
        (
            answered(200, refusal("TOO_MANY_REQUESTS")),
            Throttled("answered 200 TOO_MANY_REQUESTS"),
        ),
        (
            answered(429, refusal("TOO_MANY_REQUESTS"), retry_after="7"),
            Throttled("answered 429 TOO_MANY_REQUESTS", 7.0),
        ),
        (answered(429), Throttled("answered 429")),
        (
            answered(400, refusal("PUSH_TOO_MANY_EXPERIENCE_IDS")),
            Rejected("answered 400 PUSH_TOO_MANY_EXPERIENCE_IDS"),
        ),
        (
            answered(400, refusal("PUSH_TOO_MANY_NOTIFICATIONS")),
            Rejected("answered 400 PUSH_TOO_MANY_NOTIFICATIONS"),
        ),
        (answered(400, refusal("VALIDATION_ERROR")), Rejected("answered 400 VALIDATION_ERROR")),
        (answered(400, refusal("Hallo Frau M")), Rejected("answered 400 an unknown error")),
        (answered(401, refusal("UNAUTHORIZED")), CredentialFailure("answered 401 UNAUTHORIZED")),
        (answered(403), CredentialFailure("answered 403")),
        (answered(400, refusal("UNAUTHORIZED")), CredentialFailure("answered 400 UNAUTHORIZED")),
        (answered(404), Rejected("answered 404")),
        (answered(413), Rejected("answered 413")),
        (answered(302), Failed("answered 302")),
        (answered(408), Failed("answered 408")),
        (answered(500), Uncertain("answered 500")),
        (answered(502), Uncertain("answered 502")),
        (answered(503, retry_after="3"), Uncertain("answered 503", 3.0)),
        (answered(504), Uncertain("answered 504")),
    ],
)
def test_what_an_answer_means(reply: Reply, outcome: Outcome) -> None:
    assert meaning_of(reply) == outcome


@pytest.mark.parametrize(
    ("phase", "reason", "outcome"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent("connect: why")),
        (Phase.NOT_SENT, Trouble.GONE_AWAY, NotSent("gone_away: why")),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain("timeout: why")),
    ],
)
def test_what_no_answer_means(phase: Phase, reason: Trouble, outcome: Outcome) -> None:
    assert meaning_of(Reply(phase=phase, reason=reason.value, error="why")) == outcome


def test_an_answer_whose_body_was_lost_is_doubt_for_the_ticket_is_in_it() -> None:
    cut = replace(answered(200), reason=Trouble.BODY_LOST.value, body=b'{"data":{"status":"ok","id')
    assert isinstance(meaning_of(cut), Uncertain)


# --- receipts


async def test_receipts_are_asked_by_ticket_and_what_is_missing_is_not_there_yet() -> None:
    async with stage() as on:
        error = {"status": "error", "message": "…", "details": {"error": "DeviceNotRegistered"}}
        service = PushService(tickets={"A": {"status": "ok"}, "C": error})
        await on.serve(service.script, protocol="h2")
        found = await sender(on).receipts(["A", "B", "C"], timeout_seconds=10)
        assert found == {"A": Delivered("A"), "C": Unregistered("receipt: DeviceNotRegistered")}
        assert service.asked_for == [["A", "B", "C"]]


async def test_an_answer_too_long_to_be_read_whole_is_asked_for_in_halves() -> None:
    """Else a hundred long errors would never be read, whoever asks."""
    async with stage() as on:
        long = {"status": "error", "message": "x" * 30_000, "details": {"error": "ProviderError"}}
        names = ["A", "B", "C", "D", "E"]
        service = PushService(tickets=dict.fromkeys(names, long))
        await on.serve(service.script)
        found = await sender(on).receipts(names, timeout_seconds=10)
        assert found == dict.fromkeys(names, Uncertain("receipt: ProviderError"))
        assert max(map(len, service.asked_for[1:])) <= 3


async def test_who_gets_no_answer_about_receipts_knows_nothing_new() -> None:
    async with stage() as on:
        await on.serve(PushService().script)
        assert await sender(on, "wrong").receipts(["A"], timeout_seconds=10) is None


@pytest.mark.parametrize(
    ("receipt", "outcome"),
    [
        ({"status": "ok"}, Delivered("R")),
        (ticket("DeviceNotRegistered")["data"], Unregistered("receipt: DeviceNotRegistered")),
        (ticket("MessageTooBig")["data"], Rejected("receipt: MessageTooBig")),
        (ticket("DeveloperError")["data"], Rejected("receipt: DeveloperError")),
        (
            ticket("MessageRateExceeded")["data"],
            Throttled("receipt: MessageRateExceeded", channel_wide=False),
        ),
        (ticket("InvalidCredentials")["data"], CredentialFailure("receipt: InvalidCredentials")),
        (ticket("MismatchSenderId")["data"], CredentialFailure("receipt: MismatchSenderId")),
        (ticket("ExpoError")["data"], Uncertain("receipt: ExpoError")),
        (ticket("ProviderError")["data"], Uncertain("receipt: ProviderError")),
        (ticket()["data"], Rejected("receipt: an error without a code")),
        ({"status": "error", "details": {}}, Rejected("receipt: an error without a code")),
        ({"status": "pending"}, None),
        ({}, None),
        ("text", None),
    ],
)
def test_what_a_receipt_means(receipt: object, outcome: Outcome | None) -> None:
    """D46: an error without a code ends it too: it must not be asked about for ever."""
    found = receipts_in(answered(200, {"data": {"R": receipt}}))
    assert found == ({} if outcome is None else {"R": outcome})


@pytest.mark.parametrize(
    "reply",
    [
        answered(500),
        answered(429, refusal("TOO_MANY_REQUESTS")),
        answered(200, refusal("PUSH_TOO_MANY_RECEIPTS")),
        answered(200, {"data": []}),
        answered(200),
        Reply(phase=Phase.NOT_SENT, reason=Trouble.CONNECT.value),
        Reply(phase=Phase.UNCERTAIN, reason=Trouble.TIMEOUT.value),
    ],
)
def test_what_is_no_answer_about_receipts(reply: Reply) -> None:
    assert receipts_in(reply) is None


# --- settings


@pytest.mark.parametrize("settings", [{"base": "x"}, {"ttl_seconds": -1}, {"endpoint": 7}])
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, ExpoSettings)


async def test_the_registry_knows_it_and_needs_no_secret() -> None:
    assert fault_of("expo", {}, None) is None
    assert not kind_of("expo").needs_secret
    async with stage() as on:
        for secret in (None, ACCESS, f" {ACCESS}\n"):
            assert expo(any_channel(), secret, on.transport).facility.collapses
        for secret in ("", "two words", "zwei\nzeilen", "é"):
            with pytest.raises(BadToken):
                expo(any_channel(), secret, on.transport)
