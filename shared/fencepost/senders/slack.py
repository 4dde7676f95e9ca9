"""Slack by `chat.postMessage`. The recipient is a conversation's id. Slack drops no repeat, but can be asked:
the idempotency key travels in the message's metadata and is looked up in the conversation."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import NotSent, Outcome, Rejected, Uncertain
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import Request
from fencepost.senders.slack_answer import meaning_of
from fencepost.senders.slack_history import EVENT_TYPE, KEY, Wanted, find
from fencepost.senders.slack_message import fault_of, message_of
from fencepost.senders.transport import Transport
from fencepost.senders.vocabulary import raw_block

CONVERSATION = re.compile(r"[CGD][A-Z0-9]{2,}", re.ASCII)  # what a history can be asked for
TOKEN = re.compile(r"xox[a-z][A-Za-z0-9.-]+", re.ASCII)


class SlackSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Slack channel's settings, all optional."""

    endpoint: str = "https://slack.com/api"
    history_page_size: Annotated[int, msgspec.Meta(ge=1, le=200)] = 15
    history_pages: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    # So long after the latest doubtful attempt a message that does not stand there will not come any more.
    settled_after_seconds: Annotated[float, msgspec.Meta(ge=0)] = 60.0


class Slack:
    """The sender. `now` is wall time in unix seconds: Slack's timestamps are."""

    facility = Facility(can_be_asked=True)

    def __init__(
        self,
        transport: Transport,
        settings: SlackSettings,
        token: str,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._origin, self._path = endpoint(settings.endpoint)
        self._token = token
        self._now = now

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        message = addressed(message_of(claimed.payload, "slack"), claimed)
        if fault := fault_of(message):
            return fault
        try:
            body = json_body(message)
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        return Prepared(digest_of(body), self._request("POST", "chat.postMessage", body=body))

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        request = cast("Request", prepared.request)
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        """Whether the message stands in the conversation. Not of a user's id or a channel's name: those have no
        history."""
        age = claimed.first_attempt_age_seconds
        if age is None or not CONVERSATION.fullmatch(claimed.recipient):
            return Uncertain("only what went to a conversation's id can be asked about")
        latest = age if claimed.doubt_age_seconds is None else claimed.doubt_age_seconds
        found = await find(
            self._call,
            wanted_of(claimed, since=self._now() - age),
            pages=self._settings.history_pages,
            page_size=self._settings.history_page_size,
            timeout_seconds=timeout_seconds,
        )
        if isinstance(found, NotSent) and latest < self._settings.settled_after_seconds:
            return Uncertain("it does not stand there yet, and may still come")
        return found

    async def _call(
        self, method: str, parameters: Mapping[str, str], timeout_seconds: float
    ) -> Reply:
        request = self._request("GET", f"{method}?{urlencode(parameters)}")
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def _request(self, method: str, target: str, body: bytes = b"") -> Request:
        content = (("content-type", "application/json; charset=utf-8"),) if body else ()
        headers = (
            *content,
            ("authorization", f"Bearer {self._token}"),
            ("accept-encoding", "identity"),
            ("user-agent", "fencepost"),
        )
        return Request(
            origin=self._origin,
            target=f"{self._path}/{target}",
            headers=headers,
            body=body,
            method=method,
        )


def addressed(message: Mapping[str, Any], claimed: Claimed) -> dict[str, Any]:
    """With where it goes and the key it is looked up by. The metadata of a raw block is kept beside the key."""
    own = message.get("metadata")
    metadata = own if isinstance(own, Mapping) else {}
    payload = metadata.get("event_payload")
    event = {
        "event_type": metadata.get("event_type", EVENT_TYPE),
        "event_payload": {
            **(payload if isinstance(payload, Mapping) else {}),
            KEY: str(claimed.idempotency_key),
        },
    }
    return {**message, "channel": claimed.recipient, "metadata": event}


def wanted_of(claimed: Claimed, *, since: float) -> Wanted:
    """A reply stands in its thread's history alone, unless it was broadcast."""
    raw = raw_block(claimed.payload, "slack")
    thread = raw.get("thread_ts") if not raw.get("reply_broadcast") else None
    return Wanted(
        conversation=claimed.recipient,
        key=str(claimed.idempotency_key),
        since=since,
        thread=str(thread) if thread else None,
    )


def slack(channel: Channel, secret: str | None, transport: Transport) -> Slack:
    """The constructor of the kind `slack`. Raises ValueError or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), SlackSettings)
    token = (secret or "").strip()
    if not TOKEN.fullmatch(token):
        raise ValueError("the secret is no Slack token (xoxb-…)")
    return Slack(transport, settings, token)


KIND = SenderKind(
    build=slack,
    settings=SlackSettings,
    needs_secret=True,
    facility=lambda _: Slack.facility,
)
