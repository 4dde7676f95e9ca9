"""The webhook sender: what it makes of a notification, and of an answer."""

import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.core.channel import Facility
from fencepost.core.notification import ChannelId, Claimed, Fence, NotificationId
from fencepost.core.outcome import (
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
from fencepost.senders.signature import read_secrets
from fencepost.senders.trouble import Trouble
from fencepost.senders.webhook import Webhook, WebhookSettings, meaning_of, rendered
from rig.provider.signature import signed_by
from tests.senders.peers import Peer
from tests.senders.stage import Stage, answers, never, stage

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = uuid.UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
CLAIMED = Claimed(
    id=NotificationId(1),
    fence=Fence(1),
    channel=ChannelId(1),
    recipient="https://hook.test/in?a=b",
    payload={"type": "order.left", "title": "Hallo 😀", "data": {"order": 7, "a": [1.5, None]}},
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


def sender(on: Stage, now: float = 1_700_000_000.9, **settings: Any) -> Webhook:
    return Webhook(on.transport, WebhookSettings(**settings), read_secrets(SECRET), now=lambda: now)


def prepared(webhook: Webhook, claimed: Claimed = CLAIMED) -> Prepared:
    message = webhook.prepare(claimed)
    assert isinstance(message, Prepared)
    return message


async def test_the_receiver_gets_the_event_signed_under_its_key() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        webhook = sender(on, allow_private_networks=True)
        reply = await webhook.send(CLAIMED, prepared(webhook), timeout_seconds=10)
        assert webhook.classify(CLAIMED, reply) == Delivered()
        asked = server.log.requests[0]
        assert asked.headers[":path"] == "/in?a=b"
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["accept-encoding"] == "identity"
        assert asked.headers["webhook-id"] == str(KEY)
        assert asked.headers["webhook-timestamp"] == "1700000000"
        assert signed_by((SECRET,), asked.headers, asked.body, now=1_700_000_000.0)


async def test_every_attempt_says_the_same_at_another_time() -> None:
    """G7: same key, same bytes, same digest; only the timestamp and the signature are of the attempt."""
    async with stage() as on:
        server = await on.serve(answers, protocol="h2")
        first, second = (
            sender(on, now, allow_private_networks=True)
            for now in (1_700_000_000.0, 1_700_000_300.0)
        )
        one, two = (
            prepared(first),
            prepared(second, replace(CLAIMED, attempts=2, age_seconds=300.0)),
        )
        await first.send(CLAIMED, one, timeout_seconds=10)
        await second.send(CLAIMED, two, timeout_seconds=10)
        assert one.digest == two.digest
        assert len(one.digest) == 16
        earlier, later = server.log.requests
        assert earlier.body == later.body
        assert earlier.headers["webhook-id"] == later.headers["webhook-id"]
        assert earlier.headers["webhook-timestamp"] != later.headers["webhook-timestamp"]
        assert earlier.headers["webhook-signature"] != later.headers["webhook-signature"]


# --- the message ---


def test_the_body_is_the_event() -> None:
    body = rendered(CLAIMED.payload)
    assert body.decode() == (
        '{"data":{"a":[1.5,null],"order":7},"title":"Hallo 😀","type":"order.left"}'
    )


def test_an_event_always_has_a_type_and_data() -> None:
    assert rendered({}) == b'{"data":{},"type":"notification"}'


def test_a_raw_block_is_the_whole_body_and_other_senders_blocks_stay_out() -> None:
    raw = {"webhook": {"event": "order.left"}, "fcm": {"secret": 1}}
    assert rendered({"title": "t", "raw": raw}) == b'{"event":"order.left"}'
    assert b"fcm" not in rendered({"title": "t", "raw": {"fcm": {}}})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)  # a busy machine is no failure
@given(data=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4))
def test_the_same_payload_gives_the_same_bytes_whatever_the_order_of_its_keys(
    data: dict[str, Any],
) -> None:
    backwards = dict(reversed(data.items()))
    assert rendered({"data": data}) == rendered({"data": backwards})
    assert json.loads(rendered({"data": data}))["data"] == data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
async def test_a_payload_without_json_form_is_rejected_without_being_quoted(value: object) -> None:
    async with stage() as on:
        refused = sender(on).prepare(replace(CLAIMED, payload={"data": {"secret": value}}))
        assert refused == Rejected("payload has no JSON form")


@pytest.mark.parametrize(
    ("recipient", "settings", "reason"),
    [
        ("http://hook.test/", {}, "recipient is not https"),
        ("ftp://hook.test/", {}, "recipient is no URL: it is not https://host/…"),
        ("user@mail.test", {}, "recipient is no URL: it is not https://host/…"),
        ("https://a:b@hook.test/", {}, "recipient is no URL: it holds a user name"),
        ("http://hook.test/", {"allow_http": True}, None),
    ],
)
async def test_who_may_be_called(
    recipient: str, settings: dict[str, Any], reason: str | None
) -> None:
    async with stage() as on:
        made = sender(on, **settings).prepare(replace(CLAIMED, recipient=recipient))
        assert isinstance(made, Prepared) if reason is None else made == Rejected(reason)


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        webhook = sender(on)
        shown = repr(prepared(webhook)) + repr(webhook)
        for secret in ("hook.test", "Hallo", "order", SECRET.removeprefix("whsec_")):
            assert secret not in shown


async def test_private_networks_are_rejected_for_good_unless_the_channel_allows_them() -> None:
    """D54."""
    async with stage() as on:
        server = await on.serve(answers)
        webhook = sender(on)
        reply = await webhook.send(CLAIMED, prepared(webhook), timeout_seconds=10)
        assert isinstance(webhook.classify(CLAIMED, reply), Rejected)
        assert server.log.connections == 0


async def test_a_redirect_to_the_metadata_service_fails_the_attempt() -> None:
    async def redirects(peer: Peer) -> None:
        location = (("location", "http://169.254.169.254/"),)
        await peer.answer(await peer.request(), 302, b"", location)
        await never()

    async with stage() as on:
        await on.serve(redirects)
        webhook = sender(on, allow_private_networks=True)
        reply = await webhook.send(CLAIMED, prepared(webhook), timeout_seconds=10)
        assert webhook.classify(CLAIMED, reply) == Failed(
            "answered 302, a redirect is never followed"
        )


# --- the table (providers: signed webhooks) ---

DATE = {"date": "Wed, 21 Oct 2037 07:28:00 GMT"}


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (200, {}, Delivered()),
        (201, {}, Delivered()),  # D58
        (202, {}, Delivered()),
        (204, {}, Delivered()),
        (299, {}, Delivered()),
        (101, {}, Failed("answered 101")),
        (301, {}, Failed("answered 301, a redirect is never followed")),
        (304, {}, Failed("answered 304, a redirect is never followed")),
        (400, {}, Failed("answered 400")),
        (401, {}, Failed("answered 401")),
        (403, {}, Failed("answered 403")),
        (404, {}, Failed("answered 404")),
        (405, {}, Failed("answered 405")),
        (410, {}, Unregistered("answered 410")),
        (410, {"retry-after": "5"}, Unregistered("answered 410")),
        (413, {}, Failed("answered 413")),
        (429, {}, Throttled("answered 429", None, channel_wide=False)),
        (429, {"retry-after": "60"}, Throttled("answered 429", 60.0, channel_wide=False)),
        (429, {"retry-after": "-5"}, Throttled("answered 429", None, channel_wide=False)),
        (
            429,
            {**DATE, "retry-after": "Wed, 21 Oct 2037 07:29:00 GMT"},
            Throttled("answered 429", 60.0, channel_wide=False),
        ),
        (500, {}, Failed("answered 500")),
        (502, {}, Throttled("answered 502", None, channel_wide=False)),
        (503, {"retry-after": "120"}, Failed("answered 503", 120.0)),
        (504, {"retry-after": "7"}, Throttled("answered 504", 7.0, channel_wide=False)),
        (599, {}, Failed("answered 599")),
    ],
)
def test_what_an_answer_means(status: int, headers: dict[str, str], outcome: Outcome) -> None:
    reply = Reply(phase=Phase.ANSWERED, status=status, headers=headers)
    assert meaning_of(reply, channel_wide=False) == outcome


@pytest.mark.parametrize(
    ("phase", "reason", "outcome"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent("connect: why")),
        (Phase.NOT_SENT, Trouble.UNKNOWN_NAME, NotSent("unknown_name: why")),  # may come back
        (Phase.NOT_SENT, Trouble.TLS, NotSent("tls: why")),
        (Phase.NOT_SENT, Trouble.TIMEOUT, NotSent("timeout: why")),
        (Phase.NOT_SENT, Trouble.ADDRESS_FORBIDDEN, Rejected("address_forbidden: why")),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain("timeout: why")),
        (Phase.UNCERTAIN, Trouble.CONNECTION_LOST, Uncertain("connection_lost: why")),
    ],
)
def test_what_no_answer_means(phase: Phase, reason: Trouble, outcome: Outcome) -> None:
    reply = Reply(phase=phase, reason=reason.value, error="why")
    assert meaning_of(reply, channel_wide=False) == outcome


@pytest.mark.parametrize("reason", [Trouble.BODY_CUT, Trouble.BODY_LOST, Trouble.TIMEOUT])
def test_an_answer_stands_whatever_became_of_its_body(reason: Trouble) -> None:
    reply = Reply(phase=Phase.ANSWERED, status=200, reason=reason.value)
    assert meaning_of(reply, channel_wide=False) == Delivered()


async def test_one_service_behind_all_recipients_is_throttled_as_a_whole() -> None:
    async with stage() as on:
        reply = Reply(phase=Phase.ANSWERED, status=429, headers={"retry-after": "30"})
        whole = sender(on, throttle_whole_channel=True)
        assert whole.classify(CLAIMED, reply) == Throttled("answered 429", 30.0, channel_wide=True)


# --- settings ---


async def test_what_it_offers_against_duplicates_is_the_channels_word() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility(deduplicates_for_seconds=300.0)
        day = sender(on, deduplicates_for_seconds=86400.0)
        assert day.facility.deduplicates_for_seconds == 86400.0
        assert sender(on, deduplicates_for_seconds=0.0).facility.nothing


@pytest.mark.parametrize(
    "settings",
    [
        {"allow_htpp": True},
        {"allow_http": "yes"},
        {"deduplicates_for_seconds": -1},
        {"throttle_whole_channel": 1},
    ],
)
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, WebhookSettings)
