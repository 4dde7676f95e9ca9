"""The URL Twilio calls with what became of a message, and which attempt it speaks of. Pure.

The signature covers the whole URL (twilio_signature.py), so nobody else can name an attempt. The key is what ties it to
this database: ids of two installations are alike.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from fencepost.core.notification import Claimed, Fence, Held, NotificationId
from fencepost.core.outcome import Outcome
from fencepost.senders.twilio_answer import code_in
from fencepost.senders.twilio_status import meaning_of_status

NOTIFICATION = "fencepost_notification"
FENCE = "fencepost_fence"
KEY = "fencepost_key"
WRITTEN_KEY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Named:
    """What a callback's URL names: the last part of its path is the channel."""

    channel: str
    held: Held
    key: UUID = field(repr=False)


def callback_url(base: str, channel: str, claimed: Claimed) -> str:
    """The channel's `status_callback`, with the channel in its path and the attempt in its query.

    A fragment stays behind both: it is Twilio's own (*Connection overrides*), and no server sees it."""
    parts = urlsplit(base)
    named = urlencode(
        {NOTIFICATION: claimed.id, FENCE: claimed.fence, KEY: claimed.idempotency_key}
    )
    query = f"{parts.query}&{named}" if parts.query else named
    return parts._replace(path=f"{parts.path.rstrip('/')}/{channel}", query=query).geturl()


def named_in(url: str) -> Named | None:
    """None where it names none."""
    parts = urlsplit(url)
    try:
        query = parse_qs(parts.query, max_num_fields=100)
    except ValueError:
        return None
    id, fence = (_number(query.get(name, [])) for name in (NOTIFICATION, FENCE))
    key, channel = query.get(KEY, []), parts.path.rpartition("/")[2]
    if id is None or fence is None or not channel or len(key) != 1:
        return None
    if not WRITTEN_KEY.fullmatch(key[0]):
        return None
    return Named(channel, Held(NotificationId(id), Fence(fence)), UUID(key[0]))


def meaning_of_callback(form: Mapping[str, str]) -> Outcome | None:
    """What its form says became of the message; None where it says nothing that is known."""
    status = form.get("MessageStatus") or form.get("SmsStatus") or ""
    sid = form.get("MessageSid") or form.get("SmsSid")
    return meaning_of_status(status, code_in(form.get("ErrorCode")), sid)


def _number(written: list[str]) -> int | None:
    match written:
        case [text] if text.isascii() and text.isdigit() and len(text) < 19:
            return int(text)
    return None
