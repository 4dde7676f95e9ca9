"""Apple's push service: HTTP/2, a token signed by the team's key. The recipient is a device token.

A repeat carries the same `apns-collapse-id` and takes the place of the first on the screen: Apple's own advice for
sending the same notification again. Nobody can be asked what became of one.
"""

import dataclasses
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

import msgspec
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.apns_answers import meaning_of, token_expired
from fencepost.senders.apns_message import ForeignAps, content_of, shows
from fencepost.senders.apns_token import ProviderToken
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.collapse import collapse_id
from fencepost.senders.endpoint import endpoint
from fencepost.senders.jwt import ec_key
from fencepost.senders.kind import SenderKind
from fencepost.senders.pattern import like
from fencepost.senders.request import Request
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Trouble
from fencepost.senders.ttl import FOUR_WEEKS_SECONDS, ttl_of

BYTES_MAX = 4096
VOIP_BYTES_MAX = 5120
DEVICE = re.compile(r"[0-9A-Fa-f]{32,400}", re.ASCII)  # its length is not fixed, says Apple
ENDPOINTS = {
    "production": "https://api.push.apple.com",
    "sandbox": "https://api.sandbox.push.apple.com",
}
PUSH_TYPES = Literal[
    "alert",
    "complication",
    "controls",
    "fileprovider",
    "liveactivity",
    "location",
    "mdm",
    "pushtotalk",
    "voip",
    "widgets",
]
Id = Annotated[str, like(r"^[A-Z0-9]{10}$", "ten capital letters or digits")]


class ApnsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An APNs channel's settings."""

    topic: Annotated[
        str, like(r"^[A-Za-z0-9.-]+$", "a bundle id: letters, digits, dots and hyphens")
    ]  # the app's bundle id
    team_id: Id
    key_id: Id
    environment: Literal["production", "sandbox"] = "production"
    endpoint: str | None = None  # for a gateway of one's own
    push_type: PUSH_TYPES = "alert"  # what shows nothing goes as `background`
    # Of what has no expiry. Apple would try once and forget it.
    ttl_seconds: Annotated[int, msgspec.Meta(ge=0, le=FOUR_WEEKS_SECONDS)] = FOUR_WEEKS_SECONDS


@dataclass(frozen=True, slots=True)
class Message:
    """What `prepare` hands to `send`: token and expiry are of the attempt."""

    target: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


class Apns:
    """The sender. `now` is wall time in unix seconds: an expiry is told to Apple as an instant."""

    facility = Facility(collapses=True)

    def __init__(
        self,
        transport: Transport,
        settings: ApnsSettings,
        token: ProviderToken,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._token = token
        self._now = now
        origin, self._path = endpoint(settings.endpoint or ENDPOINTS[settings.environment])
        # Apple ties a connection to the key of its first push (UnrelatedKeyIdInToken).
        self._origin = dataclasses.replace(origin, party=f"{settings.team_id}/{settings.key_id}")
        self._refused = ""  # the token that was last called expired
        self._topic_accepted = False

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        if not DEVICE.fullmatch(claimed.recipient):
            return Rejected("recipient is no device token: it is not hexadecimal")
        try:
            content = content_of(
                claimed.payload, claimed.idempotency_key, background=self._background(claimed)
            )
            body = json_body(content)
        except ForeignAps:
            return Rejected("payload.data: the key aps is Apple's")
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        limit = VOIP_BYTES_MAX if self._settings.push_type == "voip" else BYTES_MAX
        if (refused := too_large(len(body), limit, "message")) is not None:
            return refused
        target = f"{self._path}/3/device/{claimed.recipient}"
        return Prepared(digest_of(body), Message(target, self._headers(claimed), body))

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        message = cast("Message", prepared.request)
        token = self._token.current()
        refused_before = token == self._refused
        headers = (
            *message.headers,
            ("apns-expiration", self._expiration(claimed)),
            ("authorization", f"bearer {token}"),
        )
        request = Request(
            origin=self._origin, target=message.target, headers=headers, body=message.body
        )
        try:
            reply = await self._transport.send(request, timeout_seconds=timeout_seconds)
        except SendCancelled as stopped:
            raise SendCancelled(self._judged(stopped.reply, token, refused_before)) from None
        return self._judged(reply, token, refused_before)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply, topic_accepted=self._topic_accepted)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # Apple keeps a delivery log for the sandbox's console only

    def _judged(self, reply: Reply, token: str, refused_before: bool) -> Reply:
        """A token that is called expired for the first time may have met a clock or have waited: not final."""
        self._topic_accepted = self._topic_accepted or reply.status == 200
        if not token_expired(reply):
            return reply
        self._refused = token
        if refused_before:
            return reply
        return replace(reply, reason=Trouble.KEYS_REFUSED.value)

    def _headers(self, claimed: Claimed) -> tuple[tuple[str, str], ...]:
        """What stays the same in every attempt. A background push of priority 10 would be refused."""
        background = self._background(claimed)
        soon = not background and claimed.payload.get("urgency") != "low"
        return (
            ("apns-id", str(claimed.idempotency_key)),
            ("apns-topic", self._settings.topic),
            ("apns-push-type", "background" if background else self._settings.push_type),
            ("apns-priority", "10" if soon else "5"),
            ("apns-collapse-id", collapse_id(claimed)),
            ("content-type", "application/json"),
            ("user-agent", "fencepost"),
        )

    def _background(self, claimed: Claimed) -> bool:
        return self._settings.push_type == "alert" and not shows(claimed.payload)

    def _expiration(self, claimed: Claimed) -> str:
        """Unix seconds; 0: one try, nothing is kept."""
        ttl = ttl_of(claimed.expires_in_seconds, self._settings.ttl_seconds)
        return str(int(self._now()) + ttl) if ttl else "0"


def apns(channel: Channel, secret: str | None, transport: Transport) -> Apns:
    """The constructor of the kind `apns`. Raises `BadKey`, `InvalidUrl` or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), ApnsSettings)
    key = ec_key(secret or "")
    token = ProviderToken(key, team_id=settings.team_id, key_id=settings.key_id, now=time.time)
    return Apns(transport, settings, token)


KIND = SenderKind(
    build=apns,
    settings=ApnsSettings,
    needs_secret=True,
    facility=lambda settings: Apns.facility,
)
