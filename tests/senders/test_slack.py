"""The Slack sender: what it posts, how it looks up what it posted, and what Slack's answers mean."""

import json
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
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared
from fencepost.senders.registry import kind_of
from fencepost.senders.slack import Slack, SlackSettings, slack
from fencepost.senders.slack_answer import meaning_of
from fencepost.senders.slack_history import PARTLY_READ
from fencepost.senders.trouble import Trouble
from tests.senders.claimed import KEY, claimed, in_doubt
from tests.senders.peers import Peer
from tests.senders.slack_server import TOKEN, SlackServer
from tests.senders.stage import HOST, Stage, stage
from tests.senders.test_registry import CHANNEL

NOW = 1_700_000_000.0
ROW = claimed(recipient="C0123ABC")
DOUBTFUL = in_doubt(since_seconds=300.0, recipient="C0123ABC")


def sender(on: Stage, *, token: str = TOKEN, **settings: Any) -> Slack:
    known = SlackSettings(endpoint=f"https://{HOST}/api", **settings)
    return Slack(on.transport, known, token, now=lambda: NOW)


def prepared(of: Slack, row: Claimed = ROW) -> Prepared:
    message = of.prepare(row)
    assert isinstance(message, Prepared)
    return message


async def posted(of: Slack, row: Claimed = ROW) -> Outcome:
    return of.classify(row, await of.send(row, prepared(of, row), timeout_seconds=10))


# --- over a real socket ---


@pytest.mark.parametrize("protocol", ["h1", "h2"])
async def test_it_is_posted_with_its_key_in_the_metadata(protocol: str) -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        await on.serve(server, protocol=protocol)
        assert await posted(sender(on)) == Delivered("1700000000.000000")
        (message,) = server.messages
        assert message["channel"] == "C0123ABC"
        assert message["text"] == "Your order has left\nIt comes on Tuesday."
        assert message["metadata"] == {
            "event_type": "fencepost_notification",
            "event_payload": {"fencepost_key": str(KEY)},
        }


async def test_a_refused_token_is_the_channels_fault() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        await on.serve(server)
        refused = await posted(sender(on, token="xoxb-other"))
        assert refused == CredentialFailure("answered invalid_auth")
        assert not server.messages


async def test_a_post_that_was_stored_and_never_answered_is_found_and_not_repeated() -> None:
    """No repeat of the SDKs, no second post: the history has the key."""
    async with stage() as on:
        server = SlackServer(now=NOW - 300, cuts=1)
        listening = await on.serve(server)
        lost = sender(on)
        assert isinstance(await posted(lost), Uncertain)
        assert len(listening.log.requests) == 1
        assert await lost.ask(DOUBTFUL, timeout_seconds=10) == Delivered("1699999700.000000")
        assert len(server.messages) == 1


async def test_what_does_not_stand_in_the_whole_window_was_not_sent() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        for number in range(7):
            server.store({"channel": "C0123ABC", "text": str(number)})
        await on.serve(server)
        asking = sender(on, history_page_size=3)
        found = await asking.ask(DOUBTFUL, timeout_seconds=10)
        assert found == NotSent("it does not stand in the conversation")
        assert [one.get("cursor") for one in server.asked] == [None, "3", "6"]
        assert {one["oldest"] for one in server.asked} == {f"{NOW - 300 - 120:.6f}"}


async def test_it_is_found_on_a_later_page() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        await on.serve(server)
        asking = sender(on, history_page_size=2)
        await posted(asking)
        for number in range(5):
            server.store({"channel": "C0123ABC", "text": str(number)})
        assert await asking.ask(DOUBTFUL, timeout_seconds=10) == Delivered("1700000000.000000")


async def test_a_window_not_read_to_its_end_proves_nothing() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        for number in range(7):
            server.store({"channel": "C0123ABC", "text": str(number)})
        await on.serve(server)
        asking = sender(on, history_page_size=3, history_pages=2)
        assert isinstance(await asking.ask(DOUBTFUL, timeout_seconds=10), Uncertain)
        assert len(server.asked) == 2


async def test_messages_hidden_by_the_plan_prove_nothing() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        server.hides = True
        await on.serve(server)
        assert isinstance(await sender(on).ask(DOUBTFUL, timeout_seconds=10), Uncertain)


async def test_so_shortly_after_the_attempt_absence_proves_nothing() -> None:
    async with stage() as on:
        await on.serve(SlackServer(now=NOW))
        fresh = in_doubt(since_seconds=59.0, recipient="C0123ABC")
        again = in_doubt(since_seconds=900.0, doubt_age_seconds=59.0, recipient="C0123ABC")
        assert isinstance(await sender(on).ask(fresh, timeout_seconds=10), Uncertain)
        assert isinstance(await sender(on).ask(again, timeout_seconds=10), Uncertain)


async def test_a_page_longer_than_an_answer_may_be_is_asked_for_in_halves() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        await on.serve(server)
        asking = sender(on, history_page_size=4)
        for _ in range(4):
            server.store({"channel": "C0123ABC", "text": "x" * 30_000})
        assert isinstance(await asking.ask(DOUBTFUL, timeout_seconds=10), NotSent)
        assert [(one["limit"], one.get("cursor")) for one in server.asked] == [
            ("4", None),
            ("2", None),
            ("2", "2"),
        ]


async def test_a_reply_is_looked_for_in_its_thread() -> None:
    async with stage() as on:
        server = SlackServer(now=NOW - 300, cuts=1)
        await on.serve(server)
        payload = {"body": "done", "raw": {"slack": {"thread_ts": "1699990000.000100"}}}
        row = replace(ROW, payload=payload)
        answering = sender(on)
        assert isinstance(await posted(answering, row), Uncertain)
        doubtful = replace(DOUBTFUL, payload=payload)
        assert isinstance(await answering.ask(doubtful, timeout_seconds=10), Delivered)
        assert server.asked[0]["ts"] == "1699990000.000100"


def unread(why: str) -> Uncertain:
    return Uncertain(f"the conversation cannot be read: {why}")


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        ({"ok": False, "error": "ratelimited"}, Throttled("answered ratelimited")),
        ({"ok": False, "error": "missing_scope"}, CredentialFailure("answered missing_scope")),
        (
            {"ok": False, "error": "channel_not_found"},
            unread("answered channel_not_found"),
        ),  # says nothing of the message
        ({"ok": False, "error": "is_archived"}, unread("answered is_archived")),
        ({"ok": True}, PARTLY_READ),  # no list of messages is not an empty one
        ({"ok": True, "messages": None}, PARTLY_READ),
        ({"ok": True, "messages": {}}, PARTLY_READ),
        ({"ok": True, "messages": ["odd"]}, PARTLY_READ),  # one that cannot be read may be it
        ({"ok": True, "messages": [], "has_more": True}, PARTLY_READ),
        ({}, unread("accepted or not: the answer cannot be read")),
    ],
)
async def test_a_history_that_is_refused_proves_nothing(
    refusal: dict[str, Any], outcome: Outcome
) -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        server.refuses = refusal
        await on.serve(server)
        assert await sender(on).ask(DOUBTFUL, timeout_seconds=10) == outcome


async def test_a_page_that_cannot_be_read_whole_proves_nothing_for_the_pages_after_it() -> None:
    pages = [
        {"ok": True, "messages": "odd", "response_metadata": {"next_cursor": "2"}},
        {"ok": True, "messages": []},
    ]

    async def script(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            await peer.answer(asked, 200, json.dumps(pages.pop(0)).encode())

    async with stage() as on:
        await on.serve(script)
        assert isinstance(await sender(on).ask(DOUBTFUL, timeout_seconds=10), Uncertain)
        assert pages == []


@pytest.mark.parametrize("recipient", ["U0123ABC", "#general", "@somebody", "general"])
async def test_who_has_no_history_is_not_asked_about(recipient: str) -> None:
    async with stage() as on:
        server = SlackServer(now=NOW)
        listening = await on.serve(server)
        row = replace(DOUBTFUL, recipient=recipient)
        assert isinstance(await sender(on).ask(row, timeout_seconds=10), Uncertain)
        assert listening.log.connections == 0


# --- the message ---


def body_of(made: Prepared | Outcome) -> dict[str, Any]:
    assert isinstance(made, Prepared)
    read: dict[str, Any] = json.loads(made.request.body)  # type: ignore[attr-defined]
    return read


async def test_text_is_shown_as_it_is_written() -> None:
    async with stage() as on:
        row = replace(ROW, payload={"body": "1 < 2 & <!channel> *not bold* 😀"})
        shown = body_of(sender(on).prepare(row))
        assert shown["text"] == "1 &lt; 2 &amp; &lt;!channel&gt; *not bold* 😀"
        assert shown["mrkdwn"] is False


async def test_the_vocabulary_is_taken_as_far_as_slack_knows_it() -> None:
    async with stage() as on:
        payload = {
            "title": "T",
            "body": "B",
            "url": "https://shop.example/7",
            "image": "https://shop.example/7.png",
            "badge": 3,
            "data": {"private": 1},
            "raw": {"fcm": {"x": 1}},
        }
        shown = body_of(sender(on).prepare(replace(ROW, payload=payload)))
        assert shown["text"] == "T\nB\nhttps://shop.example/7"
        assert shown["attachments"] == [
            {"fallback": "T", "image_url": "https://shop.example/7.png"}
        ]
        assert set(shown) == {"channel", "text", "mrkdwn", "attachments", "metadata"}


async def test_a_raw_block_is_laid_over_it_but_neither_over_address_nor_key() -> None:
    async with stage() as on:
        raw = {
            "channel": "C0ELSE",
            "text": "*bold*",
            "unfurl_links": False,
            "attachments": None,
            "metadata": {"event_type": "mine", "event_payload": {"a": 1, "fencepost_key": "x"}},
        }
        shown = body_of(
            sender(on).prepare(replace(ROW, payload={"image": "x", "raw": {"slack": raw}}))
        )
        assert shown["channel"] == "C0123ABC"
        assert shown["text"] == "*bold*"
        assert not shown.keys() & {"mrkdwn", "attachments"}
        assert shown["unfurl_links"] is False
        assert shown["metadata"]["event_type"] == "mine"
        assert shown["metadata"]["event_payload"] == {"a": 1, "fencepost_key": str(KEY)}


async def test_every_attempt_is_the_same_bytes() -> None:
    async with stage() as on:
        again = prepared(sender(on), replace(DOUBTFUL, fence=9))
        assert prepared(sender(on)).digest == again.digest
        other = replace(ROW, recipient="C0OTHER")
        assert prepared(sender(on), other).digest != again.digest


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"badge": 1}, "nothing to show: no title, body, url, image or raw block"),
        ({"body": "x" * 40_001}, "text has 40001 characters, Slack cuts it after 40000"),
        ({"body": "B", "raw": {"slack": {"blocks": [{}] * 51}}}, "51 blocks, Slack takes 50"),
        (
            {"body": "B", "raw": {"slack": {"attachments": [{}] * 101}}},
            "101 attachments, Slack takes 100",
        ),
        ({"body": "\ud800"}, "payload has no JSON form"),
    ],
)
async def test_what_slack_would_cut_or_refuse_is_rejected_before(
    payload: dict[str, Any], reason: str
) -> None:
    async with stage() as on:
        assert sender(on).prepare(replace(ROW, payload=payload)) == Rejected(reason)


async def test_text_is_never_cut() -> None:
    async with stage() as on:
        whole = "😀" * 40_000
        assert body_of(sender(on).prepare(replace(ROW, payload={"body": whole})))["text"] == whole


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        shown = repr(prepared(sender(on))) + repr(sender(on))
        for secret in (TOKEN, "C0123ABC", "order", "Tuesday"):
            assert secret not in shown


# --- the table (providers: Slack) ---


def answered(error: str | None = None, status: int = 200, **headers: str) -> Reply:
    body = {"ok": error is None} | ({"error": error} if error else {"ts": "1.2"})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(phase=Phase.ANSWERED, status=status, headers=named, body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("ratelimited", Throttled),
        ("rate_limited", Throttled),
        ("message_limit_exceeded", Throttled),
        ("channel_not_found", Unregistered),
        ("is_archived", Unregistered),
        ("not_in_channel", Unregistered),
        ("restricted_action", Unregistered),
        ("restricted_action_read_only_channel", Unregistered),
        ("restricted_action_thread_only_channel", Unregistered),
        ("restricted_action_non_threadable_channel", Unregistered),
        ("invalid_auth", CredentialFailure),
        ("not_authed", CredentialFailure),
        ("account_inactive", CredentialFailure),
        ("token_revoked", CredentialFailure),
        ("token_expired", CredentialFailure),
        ("missing_scope", CredentialFailure),
        ("no_permission", CredentialFailure),
        ("access_denied", CredentialFailure),
        ("team_access_not_granted", CredentialFailure),
        ("org_login_required", CredentialFailure),
        ("ekm_access_denied", CredentialFailure),
        ("no_text", Rejected),
        ("msg_too_long", Rejected),
        ("invalid_blocks", Rejected),
        ("msg_blocks_too_long", Rejected),
        ("too_many_attachments", Rejected),
        ("metadata_too_large", Rejected),
        ("invalid_arguments", Rejected),
        ("service_unavailable", Failed),
        ("request_timeout", Failed),
        ("team_added_to_org", Failed),
        ("internal_error", Uncertain),
        ("fatal_error", Uncertain),
        ("duplicate_message_not_found", Rejected),  # client_msg_id is nothing we rely on
        ("something_new", Failed),
    ],
)
def test_what_an_error_means(error: str, outcome: type[Outcome]) -> None:
    assert type(meaning_of(answered(error))) is outcome


def test_another_workspaces_token_would_be_told_the_same() -> None:
    assert meaning_of(answered("channel_not_found")) == Unregistered(
        "answered channel_not_found", guarded=True
    )
    assert meaning_of(answered("is_archived")) == Unregistered("answered is_archived")


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b'{"ok":true,"ts":"1503435956.000247"}', Delivered("1503435956.000247")),
        (200, b'{"ok":true}', Delivered()),
        (200, b'{"ok":tr', Uncertain("accepted or not: the answer cannot be read")),
        (200, b"", Uncertain("accepted or not: the answer cannot be read")),
        (500, b"<html>", Uncertain("answered 500")),
        (503, b"", Uncertain("answered 503")),
        (
            503,
            b'{"ok":false,"error":"service_unavailable"}',
            Failed("answered service_unavailable"),
        ),
        (
            403,
            b"<html>",
            CredentialFailure("answered 403 without an error: is the endpoint Slack's?"),
        ),
        (404, b"", CredentialFailure("answered 404 without an error: is the endpoint Slack's?")),
        (302, b"", Failed("answered 302")),
        (429, b"", Throttled("answered 429")),
    ],
)
def test_what_a_status_means(status: int, body: bytes, outcome: Outcome) -> None:
    assert meaning_of(Reply(phase=Phase.ANSWERED, status=status, body=body)) == outcome


def test_how_long_to_wait_is_slacks_word() -> None:
    reply = answered("ratelimited", 429, retry_after="30")
    assert meaning_of(reply) == Throttled("answered 429", 30.0)


def test_an_error_that_is_none_is_not_quoted() -> None:
    told = meaning_of(answered("Your order has left"))
    assert told == Failed("refused with an error that is not documented")


@pytest.mark.parametrize(
    ("phase", "trouble", "outcome"),
    [
        (Phase.NOT_SENT, Trouble.CONNECT, NotSent("connect: why")),
        (Phase.UNCERTAIN, Trouble.TIMEOUT, Uncertain("timeout: why")),
    ],
)
def test_what_no_answer_means(phase: Phase, trouble: Trouble, outcome: Outcome) -> None:
    assert meaning_of(Reply(phase=phase, reason=trouble.value, error="why")) == outcome


# --- the channel ---


async def test_it_can_be_asked_and_drops_no_repeat() -> None:
    async with stage() as on:
        assert sender(on).facility == Facility(can_be_asked=True)
        built = slack(CHANNEL, f" {TOKEN}\n", on.transport)
        assert isinstance(built, Slack)
    assert kind_of("slack").needs_secret


@pytest.mark.parametrize("secret", [None, "", "hunter2", "xoxb-a b", "Bearer xoxb-1"])
async def test_a_secret_that_is_no_token_is_refused_and_not_repeated(secret: str | None) -> None:
    async with stage() as on:
        with pytest.raises(ValueError) as refused:
            slack(CHANNEL, secret, on.transport)
    assert str(refused.value) == "the secret is no Slack token (xoxb-…)"


@pytest.mark.parametrize("settings", [{"token": "x"}, {"history_pages": 0}, {"endpoint": 1}])
def test_settings_are_strict(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, SlackSettings)
