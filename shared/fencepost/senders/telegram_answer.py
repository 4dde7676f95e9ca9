"""What the Bot API means by its answers. Pure.

Sources: core.telegram.org/bots/api (*Making requests*, *ResponseParameters*), and Telegram's own server,
tdlib/telegram-bot-api Client.cpp (01a3679, May 2026): it answers 400 for unknown errors of the network behind it, and
turns a 429 whose wait it cannot read into a 500. All descriptions below are written there, but "bot can't initiate
conversation", which comes from behind it: many tell of it, Telegram's pages do not. A time-out was delivered often
enough (python-telegram-bot#1045, #3937).
"""

from collections.abc import Mapping
from typing import Any

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.senders.answer import accepted, read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.unanswered import unanswered

# Parts of the descriptions, lower case, and what they come to in the ledger.
GONE = (
    "bot was blocked by the user",
    "user is deactivated",
    "bot was kicked",
    "the group chat was deleted",
)
GONE_OR_ANOTHER_BOTS = (  # a bot that was never there is told the same
    "chat not found",
    "bot is not a member",
    "bot can't initiate conversation",
)
UNSENT = "the group has become a supergroup: its new id is used from now on"


def meaning_of(reply: Reply, *, channel_wide: bool) -> Outcome:
    """The answer to a message."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    answer, status = read_object(reply.body), reply.status or 0
    reason, done = f"answered {status}", 200 <= status < 300
    if (
        answer.get("ok", done) is not done
    ):  # Telegram's errors are never a 200: this is not its own word
        return Uncertain(f"{reason}, and its body says otherwise")
    if done:
        said_ok = answer.get("ok") is True
        return Delivered(_message_id(answer)) if said_ok else accepted(reply, None, "Telegram")
    match status:
        case 429:
            return Throttled(reason, _wait(reply, answer), channel_wide=channel_wide)
        case 400 | 403:
            return _refused(reply, answer, reason)
        case 401 | 404:
            return CredentialFailure(f"{reason}: the bot's token or the endpoint is wrong")
        case _ if status >= 500:
            return Uncertain(reason, _wait(reply, answer))
        case 413:
            return Rejected(reason)
    return Failed(reason)


def moved_to(reply: Reply) -> int | None:
    """The new id of a group that has become a supergroup."""
    if reply.status != 400:
        return None
    chat = _parameters(read_object(reply.body)).get("migrate_to_chat_id")
    return chat if isinstance(chat, int) and not isinstance(chat, bool) else None


def _refused(reply: Reply, answer: Mapping[str, Any], reason: str) -> Outcome:
    if moved_to(reply) is not None:
        return NotSent(UNSENT, blameless=True)
    description = str(answer.get("description", "")).lower()
    for known in (*GONE, *GONE_OR_ANOTHER_BOTS):
        if known in description:
            return Unregistered(f"{reason}: {known}", guarded=known in GONE_OR_ANOTHER_BOTS)
    return Rejected(reason)


def _wait(reply: Reply, answer: Mapping[str, Any]) -> float | None:
    """The body's word, which is Telegram's own, over the header's."""
    said = _parameters(answer).get("retry_after", reply.headers.get("retry-after"))
    return retry_after_seconds(None if said is None else str(said), date=reply.headers.get("date"))


def _message_id(answer: Mapping[str, Any]) -> str | None:
    result = answer.get("result")
    found = result.get("message_id") if isinstance(result, Mapping) else None
    return reference_of(str(found)) if isinstance(found, int) else None


def _parameters(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = answer.get("parameters")
    return parameters if isinstance(parameters, Mapping) else {}
