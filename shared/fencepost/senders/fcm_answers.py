"""What FCM answers. Pure.

Sources: firebase.google.com, *ErrorCode* and *REST error codes for the HTTP v1 API*, *Best practices when sending FCM
messages at scale*; answers as bloomberg/pushiko has recorded them; and where marked, issues of libraries.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fencepost.core.outcome import (
    CredentialFailure,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.senders.answer import accepted, code_of, read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.standing import Blame
from fencepost.senders.trouble import Trouble
from fencepost.senders.unanswered import unanswered

QUOTA_WAIT_SECONDS = 60.0  # "a minimum initial delay of 1 minute"
SERVER_WAIT_SECONDS = 10.0  # "wait at least 10 seconds"
FCM_ERROR = "google.firebase.fcm.v1.FcmError"
BAD_TOKEN_TEXT = "not a valid FCM registration token"  # noqa: S105


class Fault(Struct, frozen=True):
    """`code` is FCM's own, "" where it gives none. The texts may quote the message: looked into, never shown."""

    code: str
    status: str
    about_token: bool
    about_one_target: bool


def unauthenticated(reply: Reply) -> bool:
    """Our access token is refused. The same 401 with THIRD_PARTY_AUTH_ERROR is about Apple's or a browser's
    credentials in the project, whatever its text says of OAuth (firebase-admin-node#3215)."""
    return reply.status == 401 and not third_party(reply)


def third_party(reply: Reply) -> bool:
    return reply.status == 401 and fault_of(reply).code == "THIRD_PARTY_AUTH_ERROR"


def meaning_of(reply: Reply, blame: Blame) -> Outcome:
    """The table of answers. `blame` is asked where Apple's or the browsers' credentials are refused.

    A 5xx may have been delivered (firebase-admin-node#1248): a repeat, which replaces it on the screen, is the policy's
    to decide.
    """
    if reply.reason == Trouble.NO_KEYS:
        return CredentialFailure(reply.error)
    if (outcome := unanswered(reply)) is not None:
        return outcome
    status = reply.status or 0
    if 200 <= status < 300:
        return accepted(reply, reference_of(read_object(reply.body).get("name")), "FCM")
    fault = fault_of(reply)
    why = f"{fault.code or fault.status or 'answered'} ({status})"
    if status >= 500:
        return Uncertain(why, max(_wait(reply) or 0.0, SERVER_WAIT_SECONDS))
    if status == 429:
        wait = _wait(reply) or QUOTA_WAIT_SECONDS
        return Throttled(why, wait, channel_wide=not fault.about_one_target)
    if status == 401:
        return _unauthenticated(reply, fault, why, blame)
    return _refused(status, fault, why)


def _refused(status: int, fault: Fault, why: str) -> Outcome:
    """404 without FCM's own code is not about a token: never the end of one. A token of another project
    (SENDER_ID_MISMATCH) is gone for this one; if all are, the project is the wrong one."""
    match status:
        case 400:
            return Unregistered(why, guarded=True) if fault.about_token else Rejected(why)
        case 403 if fault.code == "SENDER_ID_MISMATCH":
            return Unregistered(why, guarded=True)
        case 403:
            return CredentialFailure(why)
        case 404 if fault.code == "UNREGISTERED":
            return Unregistered(why)
        case 404:
            return CredentialFailure(f"{why}: no such project, or the endpoint is wrong")
        case 413:
            return Rejected(why)
    return CredentialFailure(f"{why}, not as FCM does: is the endpoint right?")


def _unauthenticated(reply: Reply, fault: Fault, why: str, blame: Blame) -> Outcome:
    if fault.code == "THIRD_PARTY_AUTH_ERROR":
        if blame is Blame.OURS:
            return CredentialFailure(f"{why}: Apple's or the web's credentials in the project")
        return Failed(why, QUOTA_WAIT_SECONDS)  # others of this channel are accepted, or may be
    if reply.reason == Trouble.KEYS_REFUSED:
        return NotSent(f"{why}: again with a new access token", blameless=True)
    return CredentialFailure(f"{why}, with a new access token too")


def fault_of(reply: Reply) -> Fault:
    error = _mapping(read_object(reply.body).get("error"))
    details = [each for each in _list(error.get("details")) if isinstance(each, Mapping)]
    codes = [each["errorCode"] for each in details if _is(each, FCM_ERROR) and "errorCode" in each]
    message = str(error.get("message", ""))
    violated = [str(each.get("field")) for each in _all(details, "fieldViolations")]
    quotas = [str(text) for each in _all(details, "violations") for text in each.values()]
    about = " ".join((message, *quotas)).lower()
    return Fault(
        code=code_of(codes[0]) if codes else "",
        status=code_of(error["status"]) if "status" in error else "",
        about_token="message.token" in violated or BAD_TOKEN_TEXT in message,
        about_one_target="device" in about or "topic" in about,
    )


def _is(detail: Mapping[str, Any], kind: str) -> bool:
    return str(detail.get("@type", "")).endswith(kind)


def _all(details: list[Mapping[str, Any]], name: str) -> Iterator[Mapping[str, Any]]:
    for detail in details:
        yield from (each for each in _list(detail.get(name)) if isinstance(each, Mapping))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _wait(reply: Reply) -> float | None:
    return retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
