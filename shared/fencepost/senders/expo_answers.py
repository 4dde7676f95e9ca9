"""What Expo's push service answers: to a message a ticket, and a quarter of an hour later a receipt. Pure.

Sources: docs.expo.dev, Send notifications with the Expo push service, and FAQ; the types of expo-server-sdk 6.1.0.
"""

from collections.abc import Mapping
from typing import Any

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
from fencepost.senders.answer import code_of, read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.unanswered import unanswered


def meaning_of(reply: Reply) -> Outcome:
    """The answer to one message in one request. A ticket `ok` says that Expo has it; what became of it then is told
    by its receipt. A 5xx may have been accepted: 504s were delivered (expo#15152, #18650)."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    answer = read_object(reply.body)
    if (refused := _request_refused(reply, answer)) is not None:
        return refused
    ticket = _ticket(answer)
    if ticket.get("status") == "ok":
        id = reference_of(ticket.get("id"))
        return Delivered(id, receipt_due=id is not None)
    if ticket.get("status") == "error":
        return error_meaning(ticket, "ticket")
    return Uncertain(f"answered {reply.status} without a ticket that can be read")


def receipts_in(reply: Reply) -> Mapping[str, Outcome] | None:
    """The receipts that are there, by ticket id; None: no answer worth reading."""
    answer = read_object(reply.body)
    found = answer.get("data")
    if reply.status != 200 or answer.get("errors") or not isinstance(found, dict):
        return None
    read = {id: _receipt_meaning(id, receipt) for id, receipt in found.items()}
    return {id: outcome for id, outcome in read.items() if outcome is not None}


def _receipt_meaning(id: str, receipt: object) -> Outcome | None:
    if not isinstance(receipt, dict):
        return None
    match receipt.get("status"):
        case "ok":
            return Delivered(id)
        case "error":
            return error_meaning(receipt, "receipt")
        case _:
            return None  # not yet


def error_meaning(said: Mapping[str, Any], what: str) -> Outcome:
    """`details.error` of a ticket or receipt. One without a code is not waited on: it will not get one (the token is
    kept, nobody said that it is dead)."""
    details = said.get("details")
    code = details.get("error") if isinstance(details, dict) else None
    if code is None:
        return Rejected(f"{what}: an error without a code")
    why = f"{what}: {code_of(code)}"
    match code:
        case "DeviceNotRegistered":
            return Unregistered(why)
        case "MessageTooBig" | "DeveloperError":
            return Rejected(why)
        case "MessageRateExceeded":
            return Throttled(why, channel_wide=False)  # to this device
        case "MismatchSenderId" | "InvalidCredentials":
            return CredentialFailure(why)
        case "ExpoError" | "ProviderError":
            return Uncertain(why)  # of Expo itself, or of FCM or APNs behind it
        case _:
            return Failed(why)


def _request_refused(reply: Reply, answer: Mapping[str, Any]) -> Outcome | None:
    """The whole request was refused; None: it was not."""
    status = reply.status or 0
    code = _request_code(answer)
    why = f"answered {status}" if code is None else f"answered {status} {code_of(code)}"
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    if status == 429 or code == "TOO_MANY_REQUESTS":
        return Throttled(why, wait)
    if status in (401, 403) or code == "UNAUTHORIZED":
        return CredentialFailure(why)
    if status >= 500:
        return Uncertain(why, wait)
    if status == 408 or 300 <= status < 400 or status < 200:
        return Failed(why, wait)
    # PUSH_TOO_MANY_EXPERIENCE_IDS and _NOTIFICATIONS cannot be: one message goes to one token.
    return Rejected(why) if status >= 400 or code is not None else None


def _request_code(answer: Mapping[str, Any]) -> object:
    match answer.get("errors"):
        case [{"code": code}, *_]:
            return code
        case [_, *_]:
            return "without a code"
        case _:
            return None


def _ticket(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """One ticket, alone (as for one message) or in a list of one; empty where there is none."""
    match answer.get("data"):
        case dict() as ticket:
            return ticket
        case [dict() as ticket]:
            return ticket
        case _:
            return {}
