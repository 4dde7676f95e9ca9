"""Webhooks as Standard Webhooks 1.0.0 wants them. The recipient is a URL; the receiver drops a repeated webhook-id."""

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    Delivered,
    Failed,
    Outcome,
    Rejected,
    Throttled,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import InvalidUrl, Request, read_url
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.signature import SigningKeys, read_secrets
from fencepost.senders.transport import Transport
from fencepost.senders.unanswered import unanswered

EVENT_TYPE = "notification"  # where the payload names none
CONTENT = (
    ("content-type", "application/json"),
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook channel's settings, all optional."""

    allow_http: bool = False  # for receivers on the same machine
    allow_private_networks: bool = False  # for receivers inside one's own network
    # The standard's example. 0: receivers do not (TOML knows no null).
    deduplicates_for_seconds: Annotated[float, msgspec.Meta(ge=0)] = 300.0
    throttle_whole_channel: bool = False  # all recipients are one service: its 429 pauses them all


class Webhook:
    """The sender. `now` is wall time in unix seconds: the standard's timestamp is of the attempt."""

    def __init__(
        self,
        transport: Transport,
        settings: WebhookSettings,
        keys: SigningKeys,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._keys = keys
        self._now = now
        self.facility = facility_of(settings)

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            origin, target = read_url(
                claimed.recipient, private_allowed=self._settings.allow_private_networks
            )
        except InvalidUrl as wrong:
            return Rejected(f"recipient is no URL: {wrong}")
        if not (origin.secure or self._settings.allow_http):
            return Rejected("recipient is not https")
        try:
            body = rendered(claimed.payload)
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        request = Request(origin=origin, target=target, headers=CONTENT, body=body)
        return Prepared(digest_of(body), request)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        message = cast("Request", prepared.request)
        signed = self._keys.headers(
            id=str(claimed.idempotency_key), timestamp=int(self._now()), body=message.body
        )
        request = Request(
            origin=message.origin,
            target=message.target,
            headers=message.headers + signed,
            body=message.body,
        )
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply, channel_wide=self._settings.throttle_whole_channel)

    def origin_of(self, recipient: str) -> str | None:
        """One receiver's trouble is not another's."""
        try:
            return read_url(recipient)[0].authority
        except InvalidUrl:
            return None

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # nobody can be asked what a receiver did


def facility_of(settings: WebhookSettings) -> Facility:
    """A receiver drops a repeat by its webhook-id; it can neither be asked nor calls back."""
    return Facility(deduplicates_for_seconds=settings.deduplicates_for_seconds or None)


def webhook(channel: Channel, secret: str | None, transport: Transport) -> Webhook:
    """The constructor of the kind `webhook`. Raises `BadSecret` or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), WebhookSettings)
    return Webhook(transport, settings, read_secrets(secret or ""))


def rendered(payload: Mapping[str, Any]) -> bytes:
    """The body: the same bytes for the same payload, on every attempt and every machine. Raises ValueError.

    A `webhook` block in the payload's `raw` is the whole body; else the payload is the event.
    """
    raw = payload.get("raw")
    own = raw.get("webhook") if isinstance(raw, Mapping) else None
    return json_body(_event(payload) if own is None else own)


def _event(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the standard recommends it: `type` and `data` are always there, the rest stands beside them."""
    said = {name: value for name, value in payload.items() if name != "raw"}
    return {"type": EVENT_TYPE, "data": {}, **said}


def meaning_of(reply: Reply, *, channel_wide: bool) -> Outcome:
    """The standard's table of answers, with our phases. Pure."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    status = reply.status or 0
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    if 200 <= status < 300:
        return Delivered()
    if status == 410:
        return Unregistered("answered 410")
    if status in (429, 502, 504):
        return Throttled(f"answered {status}", wait, channel_wide=channel_wide)
    if 300 <= status < 400:
        return Failed(f"answered {status}, a redirect is never followed", wait)
    return Failed(f"answered {status}", wait)


KIND = SenderKind(build=webhook, settings=WebhookSettings, needs_secret=True, facility=facility_of)
