"""The URL Twilio calls with what became of a message, and which attempt it speaks of. Pure.

The signature covers the whole URL (twilio_signature.py), so nobody else can name an attempt.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

from fencepost.core.notification import Fence, Held, NotificationId
from fencepost.core.outcome import Outcome
from fencepost.senders.twilio_answer import code_in
from fencepost.senders.twilio_status import meaning_of_status

NOTIFICATION = "fencepost_notification"
FENCE = "fencepost_fence"


def callback_url(base: str, held: Held) -> str:
    """The channel's `status_callback`, with the attempt in its query."""
    joined = "&" if urlsplit(base).query else "?"
    return f"{base}{joined}{urlencode({NOTIFICATION: held.id, FENCE: held.fence})}"


def attempt_of(url: str) -> Held | None:
    """The attempt a callback speaks of; None where its URL names none."""
    named = parse_qs(urlsplit(url).query)
    numbers = [_number(named.get(name, [])) for name in (NOTIFICATION, FENCE)]
    match numbers:
        case [int(id), int(fence)]:
            return Held(NotificationId(id), Fence(fence))
    return None


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
