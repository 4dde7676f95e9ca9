"""AWS's refusals: how to read them, and what those mean that every service has.

Codes: "Common Error Types" of the API references of SNS and SES v2. Where a code is one of a kind that botocore's own
retries know as throttling (botocore/retries/standard.py), it is one here.
"""

import re
from dataclasses import dataclass, field

from fencepost.core.outcome import (
    CredentialFailure,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
)
from fencepost.core.reply import Reply
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.trouble import Trouble
from fencepost.senders.unanswered import unanswered

IN_XML = re.compile(rb"<Code>\s*([A-Za-z][\w.]{0,79})\s*</Code>")
IN_JSON = re.compile(rb'"(?:__type|code)"\s*:\s*"(?:[^"#]*#)?([A-Za-z][\w.]{0,79})"')
IN_HEADER = re.compile(r"(?:[^#:]*#)?([A-Za-z][\w.]{0,79})")
MESSAGE_ID = re.compile(rb'<MessageId>\s*([\w.-]{1,200})\s*<|"MessageId"\s*:\s*"([\w.-]{1,200})"')

KEYS_REFUSED = frozenset(  # others may be good: they are looked up anew once
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
    }
)
CLOCK = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
NOT_US = KEYS_REFUSED | frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "AuthorizationError",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "SubscriptionRequiredException",
        "UnauthorizedOperation",
    }
)
TOO_MUCH = frozenset(
    {
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
UNSURE = frozenset({"RequestAbortedException", "RequestTimeout", "RequestTimeoutException"})
WRONG_PLACE = frozenset({"InvalidAction", "UnknownOperation", "UnknownOperationException"})


@dataclass(frozen=True, slots=True)
class Fault:
    """`text` may name recipients: it is looked into and never shown."""

    code: str  # "" where it is not AWS that answers
    text: str = field(repr=False)


def fault_of(reply: Reply) -> Fault:
    """From `x-amzn-errortype` (rest-json) or the body (JSON, or XML of the query protocol)."""
    text = reply.body.decode(errors="replace")
    named = IN_HEADER.match(reply.headers.get("x-amzn-errortype", ""))
    if named:
        return Fault(named[1], text)
    found = IN_XML.search(reply.body) or IN_JSON.search(reply.body)
    return Fault(found[1].decode() if found else "", text)


def message_id(reply: Reply) -> str | None:
    found = MESSAGE_ID.search(reply.body)
    return (found[1] or found[2]).decode() if found else None


def not_answered(reply: Reply) -> Outcome | None:
    """What every service of AWS means before its own table is asked; None: it is to be asked."""
    if reply.reason == Trouble.NO_KEYS:
        return CredentialFailure(reply.error)
    if (outcome := unanswered(reply)) is not None:
        return outcome
    if reply.reason == Trouble.KEYS_REFUSED:
        return NotSent(f"{shown(fault_of(reply), reply)}: keys are looked up anew", blameless=True)
    return None


def shared_meaning(fault: Fault, reply: Reply) -> Outcome:
    """A fault that the service's own table does not know. Pure.

    A clock that is wrong comes as SignatureDoesNotMatch from SNS and SES ("Signature expired: … is now earlier than …",
    aws/aws-sdk-js#1174): whatever the cause, no message of this channel will be taken until somebody acts.
    """
    why, status, wait = shown(fault, reply), reply.status or 0, wait_seconds(reply)
    if fault.code in TOO_MUCH or status == 429:
        return Throttled(why, wait)
    if fault.code in CLOCK or "Signature expired" in fault.text or "not yet current" in fault.text:
        return CredentialFailure(f"{why}: this machine's clock is wrong")
    if fault.code in NOT_US | WRONG_PLACE or status in (401, 403):
        return CredentialFailure(why)
    if status >= 500 or status == 408 or fault.code in UNSURE:
        return Uncertain(why, wait)
    if not fault.code and status not in (400, 413):
        return CredentialFailure(f"{why}, not as AWS does: is the endpoint right?")
    return Rejected(why)


def wait_seconds(reply: Reply) -> float | None:
    headers = reply.headers
    return retry_after_seconds(headers.get("retry-after"), date=headers.get("date"))


def shown(fault: Fault, reply: Reply) -> str:
    """The code and the status: all of a fault that may be kept (G10)."""
    return f"{fault.code} ({reply.status})" if fault.code else f"answered {reply.status}"
