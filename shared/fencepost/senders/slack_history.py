"""Whether a message stands in a Slack conversation: `conversations.history`, or `.replies` for a thread's reply.

Source: docs.slack.dev, both methods (`include_all_metadata`, cursors; `is_limited`: the plan hides older messages) and
*Rate limits* (apps sold outside the Marketplace: one call a minute, 15 messages a call).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
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
from fencepost.senders.slack_answer import meaning_of
from fencepost.senders.trouble import Trouble

EVENT_TYPE = "fencepost_notification"
KEY = "fencepost_key"  # in the event's payload: the idempotency key
CLOCK_SLACK_SECONDS = 120.0  # between their clock, the database's and ours

PARTLY_READ = Uncertain("not all of the conversation since then can be read")

# Calls a method with these parameters; the seconds are what is left.
Call = Callable[[str, Mapping[str, str], float], Awaitable[Reply]]


class Wanted(Struct, frozen=True, kw_only=True):
    """What is looked for, and where. `since`: unix seconds of the first attempt, by our clock."""

    conversation: str
    key: str
    since: float
    thread: str | None = None

    def parameters(self, limit: int, cursor: str) -> Mapping[str, str]:
        said = {
            "channel": self.conversation,
            "oldest": f"{max(0.0, self.since - CLOCK_SLACK_SECONDS):.6f}",
            "inclusive": "true",
            "include_all_metadata": "true",
            "limit": str(limit),
        }
        thread = {"ts": self.thread} if self.thread else {}
        return said | thread | ({"cursor": cursor} if cursor else {})


async def find(
    call: Call, wanted: Wanted, *, pages: int, page_size: int, timeout_seconds: float
) -> Outcome:
    """`Delivered` where it stands; `NotSent` where all since then was read without it; `Uncertain`: not all could be.

    A page too long for one answer is asked for again, half as long.
    """
    method = "conversations.replies" if wanted.thread else "conversations.history"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    cursor, limit, hidden = "", page_size, False
    for _ in range(pages):
        parameters = wanted.parameters(limit, cursor)
        reply = await call(method, parameters, deadline - loop.time())
        if reply.reason == Trouble.BODY_CUT:
            limit = max(1, limit // 2)
            continue
        answer = read_object(reply.body)
        if answer.get("ok") is not True:
            return _could_not_say(reply)
        if (timestamp := standing(answer, wanted.key)) is not None:
            return Delivered(timestamp)
        hidden, cursor = hidden or hides(answer), following(answer)
        if not cursor:
            unread = hidden or answer.get("has_more")
            return PARTLY_READ if unread else NotSent("it does not stand in the conversation")
    return PARTLY_READ


def standing(answer: Mapping[str, Any], key: str) -> str | None:
    """The timestamp of the message with this key."""
    for message in _messages(answer):
        metadata = message.get("metadata")
        payload = metadata.get("event_payload") if isinstance(metadata, Mapping) else None
        if isinstance(payload, Mapping) and payload.get(KEY) == key:
            return str(message.get("ts", ""))
    return None


def following(answer: Mapping[str, Any]) -> str:
    metadata = answer.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, Mapping) else None
    return cursor if isinstance(cursor, str) else ""


def hides(answer: Mapping[str, Any]) -> bool:
    """A page, any of them, on which not all can be seen that stands there."""
    messages = answer.get("messages")
    seen = isinstance(messages, list) and all(isinstance(each, Mapping) for each in messages)
    return not seen or bool(answer.get("is_limited"))


def _messages(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    messages = answer.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping):
            yield message


def _could_not_say(reply: Reply) -> Outcome:
    """That the conversation cannot be read says nothing of the message."""
    meaning = meaning_of(reply)
    if isinstance(meaning, Throttled | CredentialFailure):
        return meaning
    why = "an answer without sense" if isinstance(meaning, Delivered) else meaning.reason
    return Uncertain(f"the conversation cannot be read: {why}")
