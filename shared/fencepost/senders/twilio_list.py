"""Whether Twilio has a message: its list of messages to one number. What one page says is pure.

Source: twilio.com/docs/messaging/api/message-resource (*List resource*: To, PageSize, next_page_uri). A message that
still waits in Twilio's queue has no date of sending, so the list is not narrowed by `DateSent`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    NotSent,
    Outcome,
    Throttled,
    Uncertain,
)
from fencepost.core.reply import Reply
from fencepost.senders.answer import read_object
from fencepost.senders.twilio_answer import code_in, meaning_of
from fencepost.senders.twilio_status import meaning_of_status

CLOCK_SLACK_SECONDS = 120.0  # between their clock, the database's and ours

TRIAL = "Sent from your Twilio trial account - "  # put before the text

UNREADABLE = Uncertain("the list of messages to this number cannot be read")

# Gets a path with its query; the seconds are what is left.
Get = Callable[[str, float], Awaitable[Reply]]


class Wanted(Struct, frozen=True, kw_only=True):
    """What is looked for. `since`: unix seconds of the first attempt, by our clock."""

    text: str
    since: float


class Unreadable(Exception):
    """The list says something of a message that cannot be read."""


async def find(
    get: Get, first: str, wanted: Wanted, *, pages: int, timeout_seconds: float
) -> Outcome | None:
    """What became of the one message with this text since then.

    `Uncertain`: the list does not decide it; None: nor does its state.

    `NotSent` only where nothing at all went to this number since then: Twilio may have changed the text. Two messages
    with the same text cannot be told apart.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    page, met = first, list[Mapping[str, Any]]()
    for _ in range(pages):
        reply = await get(page, deadline - loop.time())
        answer = read_object(reply.body)
        if reply.status != 200 or not isinstance(answer.get("messages"), list):
            return _could_not_say(reply)
        try:
            met += sent_since(answer["messages"], wanted.since - CLOCK_SLACK_SECONDS)
        except Unreadable:
            return UNREADABLE
        following = answer.get("next_page_uri")
        if not isinstance(following, str) or not following.startswith("/"):
            return decided(met, wanted.text)
        page = following
    return Uncertain("the list of messages to this number is too long to be read")


def decided(met: list[Mapping[str, Any]], text: str) -> Outcome | None:
    """What all messages since then come to."""
    if not met:
        return NotSent("Twilio has no message to this number since then")
    same = [one for one in met if _text_of(one) == text.strip()]
    if len(same) != 1:
        return Uncertain(
            f"of {len(met)} messages to this number since then, {len(same)} have this text"
        )
    (one,) = same
    sid = one.get("sid")
    return meaning_of_status(
        str(one.get("status")),
        code_in(one.get("error_code")),
        sid if isinstance(sid, str) else None,
    )


def sent_since(messages: list[Any], since: float) -> Iterator[Mapping[str, Any]]:
    """The outbound ones. Raises `Unreadable`."""
    for message in messages:
        if not isinstance(message, Mapping):
            raise Unreadable
        outbound = str(message.get("direction", "outbound")).startswith("outbound")
        if outbound and _created(message) >= since:
            yield message


def _text_of(message: Mapping[str, Any]) -> str:
    return str(message.get("body", "")).removeprefix(TRIAL).strip()


def _created(message: Mapping[str, Any]) -> float:
    try:
        created = parsedate_to_datetime(str(message.get("date_created")))
    except (ValueError, OverflowError):
        raise Unreadable from None
    return (created.replace(tzinfo=UTC) if created.tzinfo is None else created).timestamp()


def _could_not_say(reply: Reply) -> Outcome:
    """That the list cannot be had says nothing of the message."""
    meaning = meaning_of(reply)
    if isinstance(meaning, Throttled | CredentialFailure):
        return meaning
    if isinstance(meaning, Delivered) or reply.status == 200:
        return UNREADABLE
    return Uncertain(f"the list of messages cannot be had: {meaning.reason}")
