"""Web Push (RFC 8030): an encrypted message to a browser, by way of the service its subscription names."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.collapse import collapse_of, topic_of
from fencepost.senders.kind import SenderKind
from fencepost.senders.pattern import like
from fencepost.senders.request import Request
from fencepost.senders.standing import Blame, Standing
from fencepost.senders.transport import Transport
from fencepost.senders.ttl import FOUR_WEEKS_SECONDS, ttl_of
from fencepost.senders.unanswered import unanswered
from fencepost.senders.vapid import Vapid, read_key
from fencepost.senders.vocabulary import laid_over, raw_block
from fencepost.senders.webpush_answers import meaning_of, refuses
from fencepost.senders.webpush_encryption import PLAINTEXT_BYTES_MAX, encrypted
from fencepost.senders.webpush_subscription import (
    BadSubscription,
    Subscription,
    read_endpoint,
    read_subscription,
)

CONTENT = (
    ("content-type", "application/octet-stream"),
    ("content-encoding", "aes128gcm"),
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)
SAME_NAME = ("title", "body", "image", "icon", "url", "silent", "data")
WINDOWS = ".notify.windows.com"


class WebPushSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Web Push channel's settings."""

    # RFC 8292, 2.1. Apple answers 403 BadJwtToken to one that is neither, and to a made-up domain.
    subject: Annotated[
        str,
        like(
            r"^(mailto:[^@\s]+@[^@\s]+|https://\S+)$", "mailto: and an address, or an https:// URL"
        ),
    ]
    # Where subscriptions may lead: "push.example", or "*.push.example" for all below it. Empty: any public host.
    allowed_hosts: tuple[
        Annotated[
            str,
            like(
                r"^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*$", "a host in small letters, or *. and a host"
            ),
        ],
        ...,
    ] = ()
    # Of what has no expiry. (autopush takes 30 days, FCM four weeks; a service may shorten it.)
    ttl_seconds: Annotated[int, msgspec.Meta(ge=0, le=FOUR_WEEKS_SECONDS)] = FOUR_WEEKS_SECONDS
    allow_private_networks: bool = False  # for a push service of one's own


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """What `prepare` hands to `send`: encryption is of the attempt."""

    subscription: Subscription
    plaintext: bytes = dataclasses.field(repr=False)
    topic: str
    urgency: str


class WebPush:
    """The sender. A repeat carries the same Topic, which replaces what still waits at the service, and the same
    `tag`, under which a service worker shows one and not two."""

    facility = Facility(collapses=True)

    def __init__(self, transport: Transport, settings: WebPushSettings, vapid: Vapid) -> None:
        self._transport = transport
        self._settings = settings
        self._vapid = vapid
        self._standing = Standing()

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            subscription = read_subscription(
                claimed.recipient, private_allowed=self._settings.allow_private_networks
            )
        except BadSubscription as wrong:
            return Rejected(f"recipient is no subscription: {wrong}")
        if not allowed(subscription.origin.host, self._settings.allowed_hosts):
            return Rejected("recipient's push service is not among allowed_hosts")
        merged = collapse_of(claimed)
        try:
            plaintext = rendered(claimed.payload, merged)
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        if (refused := too_large(len(plaintext), PLAINTEXT_BYTES_MAX, "message")) is not None:
            return refused
        urgency = str(claimed.payload.get("urgency", "normal"))
        message = Message(subscription, plaintext, topic_of(merged), urgency)
        return Prepared(digest_of(plaintext), message)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        message = cast("Message", prepared.request)
        to = message.subscription
        ttl = ttl_of(claimed.expires_in_seconds, self._settings.ttl_seconds)
        headers = (
            *CONTENT,
            ("authorization", self._vapid.authorization(to.origin)),
            ("ttl", str(ttl)),
            ("urgency", message.urgency),
            ("topic", message.topic),
            *_windows_only(to.origin.host, ttl),
        )
        body = encrypted(message.plaintext, to.p256dh, to.auth)
        request = Request(origin=to.origin, target=to.target, headers=headers, body=body)
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        if (outcome := unanswered(reply)) is not None:
            return outcome
        return meaning_of(reply, self._blame(claimed, reply), attempts=claimed.attempts)

    def origin_of(self, recipient: str) -> str | None:
        """One push service's trouble is not another's."""
        try:
            return read_endpoint(recipient)[0].authority
        except BadSubscription:
            return None

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # RFC 8030 knows receipts; the services in use offer none

    def _blame(self, claimed: Claimed, reply: Reply) -> Blame:
        """What this answer adds to what we know of its service."""
        service, target = read_endpoint(
            claimed.recipient, private_allowed=self._settings.allow_private_networks
        )
        if 200 <= (reply.status or 0) < 300:
            self._standing.accepted(service)
        elif refuses(reply):
            return self._standing.refused(service, digest_of(target.encode()))
        return Blame.NOBODY_KNOWS


def webpush(channel: Channel, secret: str | None, transport: Transport) -> WebPush:
    """The constructor of the kind `webpush`. Raises `BadKey` or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), WebPushSettings)
    return WebPush(transport, settings, Vapid(read_key(secret or ""), settings.subject))


# --- the message


def rendered(payload: Mapping[str, Any], tag: str) -> bytes:
    """What the service worker reads, in JSON: mostly options of `showNotification`. Raises ValueError.

    A `webpush` block in the payload's `raw` is laid over it, object into object.
    """
    said = {name: payload[name] for name in SAME_NAME if name in payload}
    if "badge" in payload:
        said["app_badge"] = payload["badge"]  # `badge` is a picture in showNotification
    return json_body(laid_over({"tag": tag, **said}, raw_block(payload, "webpush")))


def allowed(host: str, patterns: tuple[str, ...]) -> bool:
    """`*.push.example` means every host below push.example, and not itself."""
    below = (pattern[1:] for pattern in patterns if pattern.startswith("*."))
    return not patterns or host in patterns or any(host.endswith(each) for each in below)


def _windows_only(host: str, ttl: int) -> tuple[tuple[str, str], ...]:
    """WNS (Edge) answers 400 "Ttl value conflicts with X-WNS-Cache-Policy" unless both say the same (pywebpush#162)."""
    if not host.endswith(WINDOWS):
        return ()
    return (("x-wns-cache-policy", "cache" if ttl else "no-cache"),)


KIND = SenderKind(
    build=webpush,
    settings=WebPushSettings,
    needs_secret=True,
    facility=lambda settings: WebPush.facility,
)
