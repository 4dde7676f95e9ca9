"""The sender of a Slack incoming webhook: one URL that is address and secret in one."""

import json

import pytest
from msgspec.structs import replace

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
)
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared
from fencepost.senders.registry import fault_of
from fencepost.senders.slack_webhook import SlackWebhook, meaning_of, slack_webhook
from tests.senders.claimed import claimed
from tests.senders.peers import Peer
from tests.senders.stage import HOST, Stage, answers, never, stage
from tests.senders.test_registry import CHANNEL

URL = f"https://{HOST}/services/T0/B0/verysecret"
ROW = claimed(recipient="ops")


def sender(on: Stage) -> SlackWebhook:
    return slack_webhook(replace(CHANNEL, settings={}), f"{URL}\n", on.transport)


def prepared(of: SlackWebhook) -> Prepared:
    message = of.prepare(ROW)
    assert isinstance(message, Prepared)
    return message


async def test_the_secret_is_where_it_goes_and_the_recipient_a_label() -> None:
    async with stage() as on:
        server = await on.serve(answers)
        hook = sender(on)
        reply = await hook.send(ROW, prepared(hook), timeout_seconds=10)
        assert hook.classify(ROW, reply) == Delivered()
        (asked,) = server.log.requests
        assert asked.headers[":path"] == "/services/T0/B0/verysecret"
        assert json.loads(asked.body) == {
            "text": "Your order has left\nIt comes on Tuesday.",
            "mrkdwn": False,
        }
        other = hook.prepare(replace(ROW, recipient="somebody else"))
        assert isinstance(other, Prepared)
        assert other.digest == prepared(hook).digest


async def test_what_was_stored_and_never_answered_stays_in_doubt() -> None:
    async def stores_and_cuts(peer: Peer) -> None:
        await peer.request()
        peer.reset()
        await never()

    async with stage() as on:
        server = await on.serve(stores_and_cuts)
        hook = sender(on)
        reply = await hook.send(ROW, prepared(hook), timeout_seconds=10)
        assert isinstance(hook.classify(ROW, reply), Uncertain)
        assert len(server.log.requests) == 1
        assert hook.facility.nothing
        assert await hook.ask(ROW, timeout_seconds=10) is None


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b"ok", Delivered()),
        (200, b"", Delivered()),
        (400, b"invalid_payload", Rejected("answered 400 invalid_payload")),
        (400, b"user_not_found", Rejected("answered 400 user_not_found")),
        (400, b"no_text", Rejected("answered 400 no_text")),
        (400, b"too_many_attachments", Rejected("answered 400 too_many_attachments")),
        (403, b"action_prohibited", CredentialFailure("answered 403 action_prohibited")),
        (403, b"invalid_token", CredentialFailure("answered 403 invalid_token")),
        (404, b"channel_not_found", CredentialFailure("answered 404 channel_not_found")),
        (404, b"no_service", CredentialFailure("answered 404 no_service")),
        (404, b"no_team", CredentialFailure("answered 404 no_team")),
        (410, b"channel_is_archived", CredentialFailure("answered 410 channel_is_archived")),
        (429, b"", Throttled("answered 429")),
        (500, b"rollup_error", Uncertain("answered 500 rollup_error")),
        (503, b"<html>", Uncertain("answered 503")),
        (302, b"", Failed("answered 302")),
    ],
)
def test_what_an_answer_means(status: int, body: bytes, outcome: Outcome) -> None:
    assert meaning_of(Reply(phase=Phase.ANSWERED, status=status, body=body)) == outcome


def test_retry_after_is_heard() -> None:
    reply = Reply(phase=Phase.ANSWERED, status=429, headers={"retry-after": "30"})
    assert meaning_of(reply) == Throttled("answered 429", 30.0)


def test_what_never_left_was_not_sent() -> None:
    assert meaning_of(Reply(phase=Phase.NOT_SENT, reason="connect")) == NotSent("connect")


async def test_nothing_private_is_shown() -> None:
    async with stage() as on:
        shown = repr(prepared(sender(on))) + repr(sender(on))
        for secret in ("verysecret", HOST, "order"):
            assert secret not in shown


@pytest.mark.parametrize("secret", [None, "", "verysecret", "ftp://x/y", "https://a:b@x/y"])
async def test_a_secret_that_is_no_url_is_refused_and_not_repeated(secret: str | None) -> None:
    async with stage() as on:
        with pytest.raises(ValueError, match=r"^the secret is no webhook's URL: it ") as refused:
            slack_webhook(replace(CHANNEL, settings={}), secret, on.transport)
    assert "verysecret" not in str(refused.value)


def test_a_channel_that_wants_to_ask_is_refused_where_it_is_written_down() -> None:
    assert "reconcile cannot work" in str(fault_of("slack_webhook", {}, "env:X", "reconcile"))
    assert fault_of("slack_webhook", {}, "env:X", "hold") is None
    assert fault_of("slack", {}, "env:X", "reconcile") is None
