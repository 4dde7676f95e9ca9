"""What a mail server means by its answer, and at which command. Pure.

Sources: RFC 5321, 4.2 (replies) and 4.5.3.2.6; RFC 3463 and IANA's registry of enhanced codes (RFC 5248), RFC 7505
(5.1.10 null MX); RFC 4954 (530, 534, 535, 538: authentication); SES developer guide, *SMTP response codes* (454
throttling).
"""

import re

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.senders.trouble import Trouble
from fencepost.senders.unanswered import unanswered

ENHANCED = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?=\s|$)", re.ASCII)
QUEUED = re.compile(r"queued as ([A-Za-z0-9._-]{1,64})", re.ASCII)
BEFORE_THE_MAIL = {"connect", "ehlo", "starttls", "auth"}  # nothing of it was told yet
LOG_IN = {530, 534, 535, 538}
GONE = {"5.1.1", "5.1.2", "5.1.6", "5.1.10", "5.2.1"}  # mailbox, domain, moved, null MX, disabled
BUSY = {421, 454}  # the server as a whole
TOO_LARGE = 552


def meaning_of(reply: Reply) -> Outcome:
    """The answer to one letter."""
    if reply.reason == Trouble.LACKING:
        return CredentialFailure(reply.error)
    if reply.reason == Trouble.TOO_LARGE:
        return Rejected(reply.error)
    if (outcome := unanswered(reply)) is not None:
        return outcome
    code, stage = reply.status or 0, reply.headers.get("stage", "")
    text = reply.body.decode(errors="replace")
    found = ENHANCED.match(text)
    enhanced = found[0] if found else ""
    reason = " ".join(part for part in (f"answered {code}", enhanced, f"to {stage}") if part)
    if 200 <= code < 400:
        return _accepted(code, stage, text, reason)
    return _refused(code, stage, enhanced, reason)


def _accepted(code: int, stage: str, text: str, reason: str) -> Outcome:
    if stage == "end" and code < 300:
        queued = QUEUED.search(text)
        return Delivered(queued[1] if queued else None)
    return Uncertain(reason) if stage == "end" else Failed(reason)


def _refused(code: int, stage: str, enhanced: str, reason: str) -> Outcome:
    if code in LOG_IN:
        return CredentialFailure(reason)
    if code < 500:
        whole = code in BUSY or stage in BEFORE_THE_MAIL
        return Throttled(reason) if whole else Failed(reason)
    if stage in BEFORE_THE_MAIL:
        return CredentialFailure(reason)
    if stage == "mail" and code != TOO_LARGE:  # the channel's own address is refused
        return CredentialFailure(reason)
    if enhanced in GONE:
        return Unregistered(reason)
    return Rejected(reason)
