"""All that a sender of your own needs, from one place: these names stay (docs/own-sender.md)."""

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
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
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared, Sender
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import InvalidUrl, Request, read_url
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.transport import Transport
from fencepost.senders.unanswered import unanswered

__all__ = [
    "Channel",
    "Claimed",
    "CredentialFailure",
    "Delivered",
    "Facility",
    "Failed",
    "InvalidUrl",
    "NotSent",
    "Outcome",
    "Phase",
    "Prepared",
    "Rejected",
    "Reply",
    "Request",
    "Sender",
    "SenderKind",
    "Throttled",
    "Transport",
    "Uncertain",
    "Unregistered",
    "digest_of",
    "endpoint",
    "json_body",
    "read_url",
    "retry_after_seconds",
    "too_large",
    "unanswered",
]
