"""What Twilio means by its answer to a new message. Pure.

Sources: twilio.com/docs/usage/requests-to-twilio and the pages of the errors. 20500: "sending an SMS is not
idempotent ... it is possible for a customer to receive multiple messages". 429 (20429): not carried out. 404: the path
names nothing but the account. An `I-Twilio-Idempotency-Token` is documented for callbacks only, and not relied on.
In July 2024 21211, 21212, 21606 and 21614 were split (changelog, *Updates to the error code dictionary*): 21635, 21659,
21660, 21661. Twilio advises against logic by codes, as they change: one that is not known here follows its status.
"""

from fencepost.core.outcome import (
    CredentialFailure,
    Failed,
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

TOO_MANY = 20429
MAINTENANCE = 21730  # "try again later"; with which status is not said
GONE = {21211, 21610, 21614, 21635}  # no such number, opted out, no mobile number, a landline
CREDENTIALS = {
    10001,  # account is not active
    20003,  # not authenticated
    20005,  # account is not active
    21212,  # no valid `From`
    21601,  # `From` is no number that can send
    21603,  # `From` is missing
    21606,  # `From` is not ours, or cannot send
    21659,  # `From` is no number of Twilio's (or a short code of another country)
    21660,  # `From` is another account's
    21661,  # `From` cannot send SMS
    21701,  # no such messaging service
    21703,  # the messaging service has no numbers
}


def meaning_of(reply: Reply) -> Outcome:
    """The answer to a message."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    answer, status = read_object(reply.body), reply.status or 0
    code = code_in(answer.get("code"))
    reason = f"answered {status}" if code is None else f"answered {status} {code}"
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    if 200 <= status < 300:
        return accepted(reply, reference_of(answer.get("sid")), "Twilio")
    if status == 429 or code == TOO_MANY:
        return Throttled(reason, wait)
    if status >= 500:
        return Uncertain(reason, wait)
    if code == MAINTENANCE:
        return Failed(reason, wait)
    if code in GONE:
        return Unregistered(reason)
    if code in CREDENTIALS or status in (401, 403, 404):
        return CredentialFailure(reason)
    return Rejected(reason) if status in (400, 413, 422) else Failed(reason, wait)


def code_in(said: object) -> int | None:
    """An error code: a number, in callbacks written as text."""
    if isinstance(said, bool):
        return None
    if isinstance(said, int):
        return said
    written = isinstance(said, str) and said.isascii() and said.isdigit() and len(said) < 10
    return int(said) if written else None  # type: ignore[call-overload]
