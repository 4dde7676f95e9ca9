"""Slack by an incoming webhook: one URL, one conversation. The URL is the secret and the address in one, so the
recipient of a notification is a label only. Nothing against a repeat: the channel must choose its policy for doubt.

Sources: docs.slack.dev, *Sending messages using incoming webhooks* (errors as plain text), changelog 2016-05-17 (their
statuses). A URL or conversation that is gone is the channel's configuration: its rows wait for a new URL.
"""

import re
from typing import cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
)
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import InvalidUrl, Request
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.slack_message import fault_of, message_of
from fencepost.senders.transport import Transport
from fencepost.senders.unanswered import unanswered

HEADERS = (
    ("content-type", "application/json; charset=utf-8"),
    ("accept-encoding", "identity"),
    ("user-agent", "fencepost"),
)
CODE = re.compile(rb"[a-z_]{1,60}")


class SlackWebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """There is nothing to set."""


class SlackWebhook:
    """The sender of one URL."""

    facility = Facility()

    def __init__(self, transport: Transport, url: str) -> None:
        self._transport = transport
        self._origin, self._target = endpoint(url)

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        message = message_of(claimed.payload, "slack_webhook")
        if fault := fault_of(message):
            return fault
        try:
            body = json_body(message)
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        request = Request(origin=self._origin, target=self._target, headers=HEADERS, body=body)
        return Prepared(digest_of(body), request)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        request = cast("Request", prepared.request)
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # a webhook tells nothing of what it posted


def meaning_of(reply: Reply) -> Outcome:
    """The table of answers. Pure."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    status = reply.status or 0
    reason = f"answered {status}"
    if said := CODE.fullmatch(reply.body.strip()):
        reason += f" {said[0].decode()}"
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    match status:
        case _ if 200 <= status < 300:
            return Delivered()
        case 429:
            return Throttled(reason, wait)
        case _ if status >= 500:  # rollup_error among them
            return Uncertain(reason, wait)
        case 400 | 413 | 422:
            return Rejected(reason)
        case 401 | 403 | 404 | 410:
            return CredentialFailure(reason)
    return Failed(reason, wait)


def slack_webhook(channel: Channel, secret: str | None, transport: Transport) -> SlackWebhook:
    """The constructor of the kind `slack_webhook`. Raises ValueError or `msgspec.ValidationError`."""
    msgspec.convert(dict(channel.settings), SlackWebhookSettings)
    try:
        return SlackWebhook(transport, (secret or "").strip())
    except InvalidUrl as wrong:
        raise ValueError(f"the secret is no webhook's URL: {wrong}") from None


KIND = SenderKind(
    build=slack_webhook,
    settings=SlackWebhookSettings,
    needs_secret=True,
    facility=lambda _: SlackWebhook.facility,
)
