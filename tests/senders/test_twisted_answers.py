"""Real answers with one value twisted: each place of each provider's answer, and everything that could stand there."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fencepost.core.outcome import Delivered
from fencepost.core.reply import Phase, Reply
from fencepost.senders.registry import OUR_OWN
from tests.senders.claimed import claimed
from tests.senders.every_kind import EXAMPLES
from tests.senders.test_every_kind import MARK, VALUES, built, tells_nothing

FCM_FAULT = {
    "error": {
        "code": 404,
        "message": "not a valid FCM registration token",
        "status": "NOT_FOUND",
        "details": [
            {
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                "errorCode": "UNREGISTERED",
            },
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": "message.token", "description": "x"}],
            },
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"subject": "device:1", "description": "x"}],
            },
        ],
    }
}
SLACK = {"ok": True, "channel": "C0123ABC", "ts": "1503435956.000247", "message": {"text": "x"}}
TELEGRAM = {"ok": True, "result": {"message_id": 7, "chat": {"id": 1}, "date": 1, "text": "x"}}
MOVED = {
    "ok": False,
    "error_code": 400,
    "description": "Bad Request: chat not found",
    "parameters": {"migrate_to_chat_id": -100, "retry_after": 5},
}
TICKET = {"data": [{"status": "ok", "id": "T-1", "details": {"error": "DeviceNotRegistered"}}]}
TWILIO = {"sid": "SM1", "status": "queued", "error_code": None}
AWS_FAULT = {"__type": "com.amazonaws#NotFound", "message": "No endpoint found"}
REAL: Mapping[str, tuple[tuple[Any, tuple[int, ...]], ...]] = {
    "webhook": (({"error": "x"}, (200, 410, 500)),),
    "slack": (
        (SLACK, (200, 500)),
        ({"ok": False, "error": "is_archived", "warning": "x"}, (200, 429)),
    ),
    "slack_webhook": (({"error": "x"}, (200, 400, 404)),),
    "twilio": ((TWILIO, (201,)), ({"code": 21610, "message": "x", "status": 400}, (400, 429, 503))),
    "telegram": ((TELEGRAM, (200,)), (MOVED, (400, 429, 500))),
    "smtp": (({"text": "5.1.1 x"}, (250, 450, 550)),),
    "sns": (({"MessageId": "m-1"}, (200,)), (AWS_FAULT, (400, 404, 500))),
    "ses": (({"MessageId": "m-1"}, (200,)), (AWS_FAULT, (400, 429, 500))),
    "aws_sms": (({"MessageId": "m-1"}, (200,)), (AWS_FAULT, (400, 429, 500))),
    "fcm": (
        ({"name": "projects/a/messages/1"}, (200,)),
        (FCM_FAULT, (400, 401, 403, 404, 429, 503)),
    ),
    "apns": (({"reason": "Unregistered", "timestamp": 1629000000000}, (200, 400, 403, 410, 500)),),
    "webpush": (({"code": 410, "errno": 106, "reason": "x"}, (201, 400, 403, 404, 410, 503)),),
    "expo": (
        (TICKET, (200,)),
        ({"data": TICKET["data"][0]}, (200,)),
        ({"errors": [{"code": "UNAUTHORIZED", "message": "x"}]}, (200, 400, 500)),
    ),
}
TEXTS = (
    "x" * 5_000,
    "a\0b",
    "\ud83d",
    "😀 hush 😀",
    "'; drop table fencepost.queue; --",
    "\r\nX: y",
    1e300,
    -(10**300),
)


def places(said: Any) -> Iterator[tuple[Any, ...]]:
    """Of every value in it, the whole included."""
    yield ()
    if isinstance(said, dict | list):
        for key, value in said.items() if isinstance(said, dict) else enumerate(said):
            yield from ((key, *rest) for rest in places(value))


def twisted(said: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    whole = copy.deepcopy(said)
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return whole


@pytest.mark.parametrize("kind", OUR_OWN)
def test_one_twisted_value_breaks_no_sender_and_tells_nothing(kind: str) -> None:
    sender, row = built(kind), claimed(recipient=EXAMPLES[kind].recipients[0])
    for said, statuses in REAL[kind]:
        for place in places(said):
            for value in (*VALUES, *TEXTS):
                body = json.dumps(twisted(said, place, value)).encode()
                for status in statuses:
                    reply = Reply(phase=Phase.ANSWERED, status=status, headers={}, body=body)
                    outcome = sender.classify(row, reply)
                    tells_nothing(outcome, kind, row.recipient)
                    if isinstance(outcome, Delivered):
                        assert 200 <= status < 300
                        assert_fit(outcome.reference)


HEADERS = (
    "apns-id",
    "apns-unique-id",
    "x-wns-msg-id",
    "x-wns-status",
    "retry-after",
    "x-amzn-errortype",
)


@pytest.mark.parametrize("kind", OUR_OWN)
def test_one_twisted_header_breaks_no_sender_and_tells_nothing(kind: str) -> None:
    sender, row = built(kind), claimed(recipient=EXAMPLES[kind].recipients[0])
    for name in HEADERS:
        for value in (MARK, *(text for text in TEXTS if isinstance(text, str))):
            for status in (200, 201, 400, 403, 410, 429, 500, 503):
                reply = Reply(
                    phase=Phase.ANSWERED, status=status, headers={name: value}, body=b"{}"
                )
                outcome = sender.classify(row, reply)
                tells_nothing(outcome, kind, row.recipient)
                if isinstance(outcome, Delivered):
                    assert_fit(outcome.reference)


def assert_fit(reference: str | None) -> None:
    """A provider's reference is an id: whatever does not look like one may quote the message (G10)."""
    assert reference is None or (reference.isascii() and reference.isprintable()), reference
    assert reference is None or (len(reference) <= 200 and " " not in reference), reference
