"""Telegram by the Bot API's `sendMessage`. The recipient is a chat's id or `@channel`. The token is part of the path.
Nothing against a repeat, and a bot cannot read what it wrote: the channel must choose its policy for doubt.

Source: core.telegram.org/bots/api, *sendMessage* (1 to 4096 characters after entities parsing), *ResponseParameters*.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import Request
from fencepost.senders.telegram_answer import meaning_of, moved_to
from fencepost.senders.transport import Transport
from fencepost.senders.vocabulary import laid_over, plain_text, raw_block

TEXT_CHARACTERS_MAX = 4096
MOVED_MAX = 1000  # groups remembered; whoever is forgotten is told again by Telegram
TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,200}", re.ASCII)
NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
HEADERS = (
    ("content-type", "application/json"),
    ("accept-encoding", "identity"),
    ("user-agent", "fencepost"),
)


class TelegramSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Telegram channel's settings, all optional."""

    endpoint: str = "https://api.telegram.org"
    throttle_whole_channel: bool = True  # a 429 does not say whether the chat or the bot is meant


class Telegram:
    """The sender. It remembers which groups have become supergroups, as long as it lives."""

    facility = Facility()

    def __init__(self, transport: Transport, settings: TelegramSettings, token: str) -> None:
        self._transport = transport
        self._settings = settings
        self._origin, path = endpoint(settings.endpoint)
        self._target = f"{path}/bot{token}/sendMessage"
        self._moved: dict[str, int] = {}

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        message = message_of(claimed.payload)
        if fault := fault_of(message):
            return fault
        try:
            digest = digest_of(json_body(addressed(message, claimed.recipient)))
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        return Prepared(digest, message)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        """A group that has become a supergroup is told by its old id, and nothing is sent: the next attempt goes
        to the new one."""
        message = cast("Mapping[str, Any]", prepared.request)
        chat = self._moved.get(claimed.recipient, claimed.recipient)
        body = json_body(addressed(message, chat))
        request = Request(origin=self._origin, target=self._target, headers=HEADERS, body=body)
        reply = await self._transport.send(request, timeout_seconds=timeout_seconds)
        if (moved := moved_to(reply)) is not None:
            self._remember(claimed.recipient, moved)
        return reply

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply, channel_wide=self._settings.throttle_whole_channel)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # bots do not read what they wrote

    def _remember(self, recipient: str, moved: int) -> None:
        if len(self._moved) >= MOVED_MAX:
            del self._moved[next(iter(self._moved))]
        self._moved[recipient] = moved


def message_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Text without markup. The `raw` block is laid over it (`text`, `parse_mode`, `reply_markup`, …)."""
    return laid_over({"text": plain_text(payload)}, raw_block(payload, "telegram"))


def fault_of(message: Mapping[str, Any]) -> Rejected | None:
    """Why Telegram would refuse it. Markup is counted after it was parsed, which only Telegram does."""
    text = message.get("text")
    if not text:
        return Rejected("nothing to show: no title, body, url or raw block with text")
    counted = isinstance(text, str) and not message.get("parse_mode")
    if counted and len(text) > TEXT_CHARACTERS_MAX:
        return Rejected(f"text has {len(text)} characters, Telegram takes {TEXT_CHARACTERS_MAX}")
    return None


def addressed(message: Mapping[str, Any], chat: str | int) -> dict[str, Any]:
    number = NUMBER.fullmatch(chat) if isinstance(chat, str) else None
    return {**message, "chat_id": int(chat) if number else chat}


def telegram(channel: Channel, secret: str | None, transport: Transport) -> Telegram:
    """The constructor of the kind `telegram`. Raises ValueError or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), TelegramSettings)
    token = (secret or "").strip()
    if not TOKEN.fullmatch(token):
        raise ValueError("the secret is no bot token (123456:ABC…)")
    return Telegram(transport, settings, token)


KIND = SenderKind(
    build=telegram,
    settings=TelegramSettings,
    needs_secret=True,
    facility=lambda _: Telegram.facility,
)
