"""What APNs answers. Pure.

Source: developer.apple.com, Handling notification responses from APNs (as of 2026), where also stands: what got a 5xx
may be sent again after 15 minutes; never again what got BadDeviceToken, DeviceTokenNotForTopic, Forbidden,
ExpiredToken, Unregistered or PayloadTooLarge; after a while what got TooManyRequests.
"""

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
from fencepost.senders.answer import accepted, code_of, read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.trouble import Trouble
from fencepost.senders.unanswered import unanswered

FIVE_HUNDRED_WAIT_SECONDS = 900.0  # "after 15 minutes"
TOKEN_UPDATES_WAIT_SECONDS = 1200.0  # a token may be changed once in 20 minutes
LATEST_MS = 10**13  # three centuries on: no time that Apple knows
GONE = ("ExpiredToken", "Unregistered")
NO_TOPIC_OF_OURS = ("BadTopic", "MissingTopic", "TopicDisallowed")


def token_expired(reply: Reply) -> bool:
    return reply.status == 403 and _reason(reply) == "ExpiredProviderToken"


def meaning_of(reply: Reply, *, topic_accepted: bool) -> Outcome:
    """The table of answers. `topic_accepted`: this sender has delivered under its topic.

    A 200 says that APNs has it, also long after the app was removed (Apple forum 827088). After a 5xx it may have it
    as well: a repeat replaces it on the screen, since it carries the same collapse id, so that trying again is
    harmless; what another than APNs answered with a 5xx stays doubt.
    """
    if (outcome := unanswered(reply)) is not None:
        return outcome
    reason, status = _reason(reply), reply.status or 0
    if status == 200:
        return _taken(reply)
    if not reason:
        return _of_somebody_else(status)
    why = f"{reason} ({status})"
    match status:
        case 400:
            return _bad_request(reason, why, topic_accepted=topic_accepted)
        case 403:
            return _forbidden(reply, reason, why)
        case 410:
            return Unregistered(why, _gone_at(reply), guarded=reason not in GONE)
        case 429:
            return _too_many(reply, reason, why)
        case 500 | 503:
            return Failed(why, _wait(reply) or FIVE_HUNDRED_WAIT_SECONDS)
        case _ if status > 500:
            return Uncertain(why, _wait(reply))
    return Rejected(
        why
    )  # 404 BadPath, 405 MethodNotAllowed, 413 PayloadTooLarge, and what may come


def _taken(reply: Reply) -> Outcome:
    """Apple names it in a header, and has nothing to add: no name, but a page, is somebody else's."""
    headers = reply.headers
    id = reference_of(headers.get("apns-unique-id") or headers.get("apns-id"))
    return accepted(reply, id, "APNs") if reply.body else Delivered(id)


def _bad_request(reason: str, why: str, *, topic_accepted: bool) -> Outcome:
    """A token of the other environment is a BadDeviceToken too. DeviceTokenNotForTopic is the channel's fault where
    nothing was ever delivered under its topic; afterwards it is that one token's, and must not stop the others."""
    if reason == "BadDeviceToken":
        return Unregistered(why, guarded=True)
    if reason == "DeviceTokenNotForTopic":
        return Unregistered(why, guarded=True) if topic_accepted else CredentialFailure(why)
    if reason in NO_TOPIC_OF_OURS:
        return CredentialFailure(why)
    if reason == "IdleTimeout":
        return Failed(why)
    return Rejected(why)


def _forbidden(reply: Reply, reason: str, why: str) -> Outcome:
    """All of it concerns the key, its token, its team or its environment; nothing the message."""
    if reason == "ExpiredProviderToken":
        if reply.reason == Trouble.KEYS_REFUSED:
            return NotSent(f"{why}: again with a token of its time", blameless=True)
        return CredentialFailure(f"{why}, twice: is this machine's clock right?")
    if reason == "UnrelatedKeyIdInToken":  # a gateway's connection: our own are of one key each
        return NotSent(why)
    return CredentialFailure(why)


def _too_many(reply: Reply, reason: str, why: str) -> Outcome:
    if reason == "TooManyProviderTokenUpdates":  # somebody else mints with this key
        return Throttled(why, _wait(reply) or TOKEN_UPDATES_WAIT_SECONDS)
    return Throttled(why, _wait(reply), channel_wide=False)  # to one device


def _of_somebody_else(status: int) -> Outcome:
    """APNs tells a reason with every refusal."""
    why = f"answered {status} without a reason"
    if status == 410:
        return Unregistered(why, guarded=True)
    if status == 429:
        return Throttled(why)
    if status >= 500 or 200 <= status < 300:
        return Uncertain(why)
    return CredentialFailure(f"{why}, not as APNs does: is the endpoint right?")


def _reason(reply: Reply) -> str:
    said = read_object(reply.body).get("reason")
    return code_of(said) if said else ""


def _gone_at(reply: Reply) -> float | None:
    """Milliseconds: the last time APNs knew the token to be good no more."""
    told = read_object(reply.body).get("timestamp")
    if isinstance(told, bool) or not isinstance(told, int) or not 0 < told < LATEST_MS:
        return None
    return told / 1000


def _wait(reply: Reply) -> float | None:
    return retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
