"""What comes of an event of SES, however it travels through a queue."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.core.callback import Callback
from fencepost.core.notification import AttemptOutcome
from fencepost.core.outcome import Unregistered
from fencepost.senders.aws.event import GREETING, callbacks_in
from tests.senders.test_ses_event import AT_SECONDS, KEY, MAIL, bounce, event

DELIVERED, REJECTED = AttemptOutcome.DELIVERED, AttemptOutcome.REJECTED


def raw(said: dict[str, Any]) -> str:
    return json.dumps(said)


def by_sns(said: dict[str, Any]) -> str:
    topic = "arn:aws:sns:eu-central-1:123456789012:mail"
    return json.dumps({"Type": "Notification", "TopicArn": topic, "Message": json.dumps(said)})


def by_eventbridge(said: dict[str, Any]) -> str:
    kind = f"Email {said['eventType']}"
    return json.dumps({"version": "0", "source": "aws.ses", "detail-type": kind, "detail": said})


def told(outcome: AttemptOutcome | None, **words: Any) -> Callback:
    return Callback(held=MAIL.held, key=KEY, outcome=outcome, **words)


@pytest.mark.parametrize("travel", [raw, by_sns, by_eventbridge])
@pytest.mark.parametrize(
    ("said", "callback"),
    [
        (event("Send"), told(DELIVERED, reference="0100018c-4d")),
        (event("Delivery"), told(DELIVERED, reference="0100018c-4d")),
        (event("DeliveryDelay"), told(DELIVERED, reference="0100018c-4d")),
        (event("Reject"), told(REJECTED, detail="event Reject")),
        (event("Rendering Failure"), told(REJECTED, detail="event Rendering Failure")),
        (
            event("Bounce", **bounce("Permanent", "General")),
            told(
                DELIVERED,
                detail="event Bounce Permanent General",
                gone=Unregistered("event Bounce Permanent General", AT_SECONDS),
            ),
        ),
        (
            event("Bounce", **bounce("Transient", "MailboxFull")),
            told(DELIVERED, detail="event Bounce Transient MailboxFull"),
        ),
        (
            event("Complaint", complaint={"timestamp": "2026-11-30T12:00:00.000Z"}),
            told(
                DELIVERED,
                detail="event Complaint",
                gone=Unregistered("event Complaint", AT_SECONDS),
            ),
        ),
    ],
)
def test_every_kind_comes_the_same_by_every_way(
    travel: Callable[[dict[str, Any]], str], said: dict[str, Any], callback: Callback
) -> None:
    assert callbacks_in(travel(said)) == (callback,)


@pytest.mark.parametrize("travel", [raw, by_sns, by_eventbridge])
def test_a_mail_of_somebody_else_tells_nothing_and_is_no_bad_message(
    travel: Callable[[dict[str, Any]], str],
) -> None:
    assert callbacks_in(travel({"eventType": "Send", "mail": {"messageId": "x"}})) == ()


@pytest.mark.parametrize(
    "body", [GREETING, json.dumps({"Type": "Notification", "Message": GREETING})]
)
def test_the_line_that_greets_a_topic_is_taken(body: str) -> None:
    assert callbacks_in(body) == ()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "eventType",
        "[" * 100_000 + "eventType",
        '["eventType"]',
        '{"eventType": 7, "mail": {}}',
        '{"eventType": "Send"}',
        '{"Type": "Notification", "Message": "eventType"}',
        '{"source": "aws.ses", "detail": ["eventType"]}',
        '{"version": 1, "command": "drain"}',
    ],
)
def test_anything_else_is_left_to_those_who_read_commands(body: str) -> None:
    assert callbacks_in(body) is None
