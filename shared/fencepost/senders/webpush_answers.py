"""What a push service's answer means. Pure."""

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
from fencepost.senders.answer import read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.standing import Blame

REFUSALS = 3  # of one address, while its service accepts others: it is gone
CODE = re.compile(r"[A-Za-z]{1,40}|errno [0-9]{1,4}", re.ASCII)


def refuses(reply: Reply) -> bool:
    """An answer that a dead subscription and a wrong key of ours have in common."""
    return reply.status in (400, 401, 403)


def meaning_of(reply: Reply, blame: Blame, *, attempts: int) -> Outcome:
    """The table of answers. Sources: RFC 8030 (5, 6, 8.4) and 8292 (4.2); Mozilla autopush-rs docs/errors.md; Apple,
    Sending web push notifications in web apps and browsers; WNS, Push notification service request and response
    headers; and where marked, issues of libraries.

    201 is RFC 8030's; services answer 200 and 202 too (apprise#1728). 406 is WNS's own for "throttled", with a
    Retry-After (WindowsAppSDK#3501; of late it answers 429). 301 is autopush's for a bridge's new URL: never followed.
    A 5xx was not processed (autopush 503, errno 201 and 202); but who answers 504 has asked somebody else, and does
    not know.
    """
    status = reply.status or 0
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    why = _why(reply)
    if 200 <= status < 300:
        headers = reply.headers
        return Delivered(reference_of(headers.get("apns-id") or headers.get("x-wns-msg-id")))
    if refuses(reply):
        return _refused(status, why, blame, wait, attempts=attempts)
    if status in (404, 410):
        return Unregistered(why)
    if status in (406, 429):
        return Throttled(why, wait, channel_wide=False)  # one service of many
    if status == 504:
        return Uncertain(why, wait)
    if 300 <= status < 500 and status != 408:  # 408: it gave up before it had read all of it
        return Rejected(why)
    return Failed(why, wait)


def _refused(status: int, why: str, blame: Blame, wait: float | None, *, attempts: int) -> Outcome:
    """400, 401 and 403. A subscription made under another key is answered 400 VapidPkHashMismatch (Apple), 401 "public
    key mismatch" (Mozilla) or 403 (FCM); a dead one at Apple with 403 as well (AI-Employee#586)."""
    if blame is Blame.OURS:
        return CredentialFailure(f"{why}, to one subscription after the other")
    if status == 400 and not why.endswith("VapidPkHashMismatch"):
        return Rejected(why)
    if blame is Blame.ADDRESS and attempts >= REFUSALS:
        return Unregistered(f"{why}, {attempts} times, while others are accepted", guarded=True)
    return Failed(why, wait)


def _why(reply: Reply) -> str:
    """The status, and the short code that Apple, Mozilla and WNS give with it. Their sentences stay out."""
    said = read_object(reply.body)
    code = reply.headers.get("x-wns-status") or said.get("reason") or f"errno {said.get('errno')}"
    known = isinstance(code, str) and CODE.fullmatch(code)
    return f"answered {reply.status} {code}" if known else f"answered {reply.status}"
