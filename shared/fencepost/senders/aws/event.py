"""An event of AWS as it comes through a queue: by itself, in the envelope of SNS, or in that of EventBridge. Pure.

Sources: SES developer guide, *Contents of event records*; End User Messaging SMS guide, *Example event data*; SNS
developer guide, *Message delivery raw format* (the envelope, which raw delivery leaves out); EventBridge: `detail`
holds the same record. When a topic is chosen, SES sends it one line of text, "Successfully validated SNS topic for
Amazon SES event publishing."
"""

import json
from collections.abc import Mapping
from typing import Any

from fencepost.core.callback import Callback, callback_of
from fencepost.core.notification import AttemptOutcome
from fencepost.core.outcome import Failed, Unregistered
from fencepost.senders import aws_sms_event, ses_event
from fencepost.senders.aws.tags import Told

GREETING = "Successfully validated SNS topic for Amazon SES event publishing."
GREETED = {"eventType": "", "mail": None}  # an event that tells nothing
READERS = (ses_event, aws_sms_event)


def callbacks_in(body: str) -> tuple[Callback, ...] | None:
    """What a message of the queue tells. Empty: it is AWS's, and of none of our messages. None: it is no event."""
    if body.strip() == GREETING:
        return ()
    event = _unwrapped(body) if "eventType" in body or GREETING in body else None
    for reader in READERS:
        if event is not None and reader.is_one(event):
            told = reader.told_by(event)
            return (_callback(told),) if told is not None else ()
    return None


def _callback(told: Told) -> Callback:
    """A message that bounces, or that is complained about, was taken: the events around it say so in any order, and
    the notification is delivered, as after every accepted send. Who is gone is told all the same."""
    match told.outcome:
        case Unregistered(reason=why) as gone:
            return _taken(told, why, gone)
        case Failed(reason=why):
            return _taken(told, why)
    return callback_of(told.held, told.key, told.outcome)


def _taken(told: Told, why: str, gone: Unregistered | None = None) -> Callback:
    delivered = AttemptOutcome.DELIVERED
    return Callback(held=told.held, outcome=delivered, key=told.key, detail=why, gone=gone)


def _unwrapped(body: str) -> Mapping[str, Any] | None:
    said = _object(body)
    if said is None:
        return None
    if str(said.get("source", "")).startswith("aws.") and isinstance(said.get("detail"), dict):
        said = said["detail"]
    elif said.get("Type") == "Notification" and isinstance(message := said.get("Message"), str):
        said = {**GREETED} if message.strip() == GREETING else _object(message) or said
    return said


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
