"""Expo's push service: one message for the apps of one project on iOS and Android, by way of APNs and FCM.

One request carries one message, although Expo takes a hundred: what comes back lost would be in doubt for all of them
together, and the ticket of each with it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.collapse import collapse_id
from fencepost.senders.endpoint import endpoint
from fencepost.senders.expo_answers import meaning_of, receipts_in
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import Request
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Trouble
from fencepost.senders.ttl import FOUR_WEEKS_SECONDS, ttl_of
from fencepost.senders.vocabulary import laid_over, raw_block

MESSAGE_BYTES_MAX = 4096  # of what APNs and FCM get; measured on ours without address and lifetime
SEND = "/--/api/v2/push/send"
RECEIPTS = "/--/api/v2/push/getReceipts"
# As expo-server-sdk 6.1.0 knows them: ExponentPushToken[…], ExpoPushToken[…], or a UUID.
TOKEN = re.compile(
    r"Expo(nent)?PushToken\[[^\]\s]+\]|[a-z\d]{8}(-[a-z\d]{4}){3}-[a-z\d]{12}",
    re.IGNORECASE | re.ASCII,
)
ACCESS_TOKEN = re.compile(r"[\x21-\x7e]+")
SAME_NAME = ("title", "body", "data", "sound", "badge", "icon")
SHOWN = ("title", "body", "sound", "icon", "richContent")
PRIORITIES = {"low": "normal", "normal": "default", "high": "high"}
CONTENT = (
    ("content-type", "application/json"),
    ("accept", "application/json"),
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)


class ExpoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An Expo channel's settings, all optional."""

    endpoint: str = "https://exp.host"
    # Of what has no expiry. Without one APNs would try once and forget it, and FCM keep it for four weeks.
    ttl_seconds: Annotated[int, msgspec.Meta(ge=0, le=FOUR_WEEKS_SECONDS)] = FOUR_WEEKS_SECONDS


class BadToken(ValueError):
    """The secret is no access token. The message does not repeat it."""


@dataclass(frozen=True, slots=True)
class Message:
    """What `prepare` hands to `send`: the lifetime is of the attempt."""

    content: Mapping[str, Any] = field(repr=False)


class Expo:
    """The sender. A repeat carries the same `collapseId` and `tag`: on the screen it replaces the first. The ticket
    of a lost answer is lost with it, so that nothing can be asked about it."""

    facility = Facility(collapses=True)
    receipts_max = (
        100  # Expo tells of a thousand at once; of a hundred errors its answer is still read whole
    )

    def __init__(self, transport: Transport, settings: ExpoSettings, token: str | None) -> None:
        self._transport = transport
        self._settings = settings
        self._origin, self._path = endpoint(settings.endpoint)
        self._headers = (
            CONTENT if token is None else (*CONTENT, ("authorization", f"Bearer {token}"))
        )

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        if not TOKEN.fullmatch(claimed.recipient):
            return Rejected("recipient is no Expo push token")
        content = message_of(claimed.payload, collapse_id(claimed))
        try:
            body = json_body(content)
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        refused = too_large(len(body), MESSAGE_BYTES_MAX, "message")
        return refused or Prepared(digest_of(body), Message(content))

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        content = cast("Message", prepared.request).content
        ttl = ttl_of(claimed.expires_in_seconds, self._settings.ttl_seconds)
        body = json_body({"ttl": ttl, **content, "to": claimed.recipient})
        return await self._post(SEND, body, timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # it is found by its ticket only

    async def receipts(
        self, references: Sequence[str], *, timeout_seconds: float
    ) -> Mapping[str, Outcome] | None:
        """What became of accepted messages, by ticket id. One that is missing is not there yet. None: no answer."""
        reply = await self._post(RECEIPTS, json_body({"ids": list(references)}), timeout_seconds)
        if reply.reason != Trouble.BODY_CUT or len(references) < 2:
            return receipts_in(reply)
        middle = len(references) // 2  # so many errors, told at such length, that not all were read
        first = await self.receipts(references[:middle], timeout_seconds=timeout_seconds)
        second = await self.receipts(references[middle:], timeout_seconds=timeout_seconds)
        return None if first is None or second is None else {**first, **second}

    async def _post(self, path: str, body: bytes, timeout_seconds: float) -> Reply:
        request = Request(
            origin=self._origin, target=self._path + path, headers=self._headers, body=body
        )
        return await self._transport.send(request, timeout_seconds=timeout_seconds)


def expo(channel: Channel, secret: str | None, transport: Transport) -> Expo:
    """The constructor of the kind `expo`; the secret is an access token, where the project wants one.
    Raises `BadToken`, `InvalidUrl` or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), ExpoSettings)
    token = None if secret is None else secret.strip()
    if token is not None and not ACCESS_TOKEN.fullmatch(token):
        raise BadToken("the secret is no access token: it is empty, or not on one line")
    return Expo(transport, settings, token)


def message_of(payload: Mapping[str, Any], collapse: str) -> dict[str, Any]:
    """All of a message but its address and lifetime. An `expo` block in the payload's `raw` is laid over it, object
    into object.

    A tap finds `url` in `data`, where Expo's router looks for it. `category` is the iOS category and the Android
    channel: on an Android that has no channel of that name nothing is shown, says Expo.
    """
    said = {name: payload[name] for name in SAME_NAME if name in payload}
    if "url" in payload:
        said["data"] = {"url": payload["url"], **said.get("data", {})}
    if "image" in payload:
        said["richContent"] = {"image": payload["image"]}
    if "category" in payload:
        said |= {"categoryId": payload["category"], "channelId": payload["category"]}
    if "urgency" in payload:
        said["priority"] = PRIORITIES[payload["urgency"]]
    if payload.get("silent"):
        said = {name: value for name, value in said.items() if name not in SHOWN}
        said["_contentAvailable"] = True
    merged = {"collapseId": collapse, "tag": collapse}
    return laid_over({**merged, **said}, raw_block(payload, "expo"))


KIND = SenderKind(build=expo, settings=ExpoSettings, facility=lambda settings: Expo.facility)
