"""Firebase Cloud Messaging, HTTP v1: one request a message. The recipient is a registration token, `topic:NAME` or
`condition:…`.

FCM has no key against duplicates and cannot be asked. What is shown carries a tag on every platform, under which a
repeat replaces the first; what is not shown carries the notification's key for the app.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import msgspec
from msgspec.structs import replace

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.access_token import AccessToken, Lent
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.endpoint import endpoint
from fencepost.senders.fcm_answers import meaning_of, third_party, unauthenticated
from fencepost.senders.fcm_message import (
    NoTarget,
    content_of,
    counted_bytes,
    lifetime,
    target_of,
)
from fencepost.senders.google_account import read_account
from fencepost.senders.google_token import google_token
from fencepost.senders.kind import SenderKind
from fencepost.senders.pattern import like
from fencepost.senders.request import Request
from fencepost.senders.standing import Blame, Standing
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Trouble
from fencepost.senders.ttl import FOUR_WEEKS_SECONDS, ttl_of
from fencepost.senders.vocabulary import laid_over

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
BYTES_MAX = 4096
TOPIC_BYTES_MAX = 2048
HEADERS = (
    ("content-type", "application/json"),
    ("accept-encoding", "identity"),  # an answer is never unpacked
    ("user-agent", "fencepost"),
)
ProjectId = Annotated[
    str, like(r"^[a-z0-9:.-]+$", "a project id: small letters, digits and hyphens")
]


class FcmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An FCM channel's settings, all optional."""

    project_id: ProjectId | None = None  # where it is not the service account's own
    endpoint: str = "https://fcm.googleapis.com"
    # Of what has no expiry. FCM would keep it four weeks for Android; Apple would try once.
    ttl_seconds: Annotated[int, msgspec.Meta(ge=0, le=FOUR_WEEKS_SECONDS)] = FOUR_WEEKS_SECONDS


@dataclass(frozen=True, slots=True)
class Message:
    """What `prepare` hands to `send`: the lifetime is of the attempt."""

    target: Mapping[str, str] = field(repr=False)
    content: Mapping[str, Any] = field(repr=False)


class Fcm:
    """The sender. `now` is wall time in unix seconds: an expiry is told to Apple as an instant."""

    facility = Facility(collapses=True)

    def __init__(
        self,
        transport: Transport,
        settings: FcmSettings,
        token: AccessToken,
        project_id: str,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._token = token
        self._now = now
        self._origin, path = endpoint(settings.endpoint)
        self._target = f"{path}/v1/projects/{project_id}/messages:send"
        self._standing = Standing()

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            target = target_of(claimed.recipient)
            content = content_of(claimed)
            body = json_body(content)
        except NoTarget as wrong:
            return Rejected(str(wrong))
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        limit = BYTES_MAX if "token" in target else TOPIC_BYTES_MAX
        refused = too_large(counted_bytes(content), limit, "message")
        return refused or Prepared(digest_of(body), Message(target, content))

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        lent = await self._token.lend(timeout_seconds=timeout_seconds)
        if isinstance(lent, Reply):
            return lent
        request = self._request(claimed, cast("Message", prepared.request), lent)
        try:
            reply = await self._transport.send(request, timeout_seconds=deadline - loop.time())
        except SendCancelled as stopped:
            raise SendCancelled(self._judged(stopped.reply, lent)) from None
        return self._judged(reply, lent)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply, self._blame(claimed, reply))

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # FCM tells of single messages only in its exports, a day later

    def _request(self, claimed: Claimed, message: Message, lent: Lent) -> Request:
        ttl = ttl_of(claimed.expires_in_seconds, self._settings.ttl_seconds)
        content = laid_over(lifetime(ttl, self._now()), message.content)
        return Request(
            origin=self._origin,
            target=self._target,
            headers=(*HEADERS, ("authorization", f"Bearer {lent.token}")),
            body=json_body({"message": {**content, **message.target}}),
        )

    def _judged(self, reply: Reply, lent: Lent) -> Reply:
        """A refused token is dropped; where a new one may be better, the reply says that it is not final."""
        if reply.phase is not Phase.ANSWERED:
            return reply
        if not unauthenticated(reply):
            self._token.accepted(lent)
            return reply
        if not self._token.refused(lent):
            return reply
        return replace(reply, reason=Trouble.KEYS_REFUSED.value)

    def _blame(self, claimed: Claimed, reply: Reply) -> Blame:
        """Whose credentials: FCM asks Apple and the browsers' services in the project's name, Android needs none."""
        if reply.status == 200:
            self._standing.accepted(self._origin)
        elif third_party(reply):
            return self._standing.refused(self._origin, digest_of(claimed.recipient.encode()))
        return Blame.NOBODY_KNOWS


def fcm(channel: Channel, secret: str | None, transport: Transport) -> Fcm:
    """The constructor of the kind `fcm`. Raises `BadAccount`, `InvalidUrl` or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), FcmSettings)
    account = read_account(secret or "")
    token = google_token(transport, account, SCOPE, now=time.time)
    return Fcm(transport, settings, token, settings.project_id or account.project_id)


KIND = SenderKind(
    build=fcm,
    settings=FcmSettings,
    needs_secret=True,
    facility=lambda settings: Fcm.facility,
)
