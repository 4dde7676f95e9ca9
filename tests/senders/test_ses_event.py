"""An event of SES says which attempt it is about and what became of its mail; whatever else it holds is passed over."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from fencepost.core.notification import Fence, Held, NotificationId
from fencepost.core.outcome import Delivered, Failed, Outcome, Rejected, Unregistered
from fencepost.senders.aws.tags import KEY_TAG, NOTIFICATION_TAG, Told, tags_of
from fencepost.senders.ses_event import told_by
from tests.core.rows import a_claimed

KEY = UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
MAIL = a_claimed(7, 3, idempotency_key=KEY, attempts=2)
AT = "2026-11-30T12:00:00.000Z"
AT_SECONDS = 1_796_040_000.0


def event(kind: str, **parts: Any) -> dict[str, Any]:
    """As SES writes one, with what it adds of its own."""
    tags = {name: [value] for name, value in tags_of(MAIL).items()}
    return {
        "eventType": kind,
        "mail": {
            "timestamp": AT,
            "source": "orders@shop.example",
            "messageId": "0100018c-4d",
            "destination": ["ann@mail.example"],
            "headersTruncated": False,
            "tags": {"ses:configuration-set": ["events"], "ses:source-ip": ["192.0.2.1"], **tags},
        },
        **parts,
    }


def bounce(kind: str, subtype: str) -> dict[str, Any]:
    return {"bounce": {"bounceType": kind, "bounceSubType": subtype, "timestamp": AT}}


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (event("Send", send={}), Delivered("0100018c-4d")),
        (event("Delivery", delivery={"timestamp": AT}), Delivered("0100018c-4d")),
        (
            event("DeliveryDelay", deliveryDelay={"delayType": "MailboxFull"}),
            Delivered("0100018c-4d"),
        ),
        (event("Open", open={}), Delivered("0100018c-4d")),
        (event("Click", click={}), Delivered("0100018c-4d")),
        (event("Subscription", subscription={}), Delivered("0100018c-4d")),
        (event("Reject", reject={"reason": "Bad content"}), Rejected("event Reject")),
        (event("Rendering Failure", failure={}), Rejected("event Rendering Failure")),
        (
            event("Bounce", **bounce("Permanent", "General")),
            Unregistered("event Bounce Permanent General", AT_SECONDS),
        ),
        (
            event("Bounce", **bounce("Permanent", "NoEmail")),
            Unregistered("event Bounce Permanent NoEmail", AT_SECONDS),
        ),
        (
            event("Bounce", **bounce("Permanent", "OnAccountSuppressionList")),
            Unregistered("event Bounce Permanent OnAccountSuppressionList", AT_SECONDS),
        ),
        (
            event("Bounce", **bounce("Transient", "MailboxFull")),
            Failed("event Bounce Transient MailboxFull"),
        ),
        (
            event("Bounce", **bounce("Undetermined", "Undetermined")),
            Failed("event Bounce Undetermined Undetermined"),
        ),
        (event("Bounce"), Failed("event Bounce")),
        (
            event("Complaint", complaint={"timestamp": AT}),
            Unregistered("event Complaint", AT_SECONDS),
        ),
        (event("Complaint", complaint={"timestamp": "soon"}), Unregistered("event Complaint")),
    ],
)
def test_what_an_event_says(said: dict[str, Any], outcome: Outcome) -> None:
    told = told_by(json.loads(json.dumps(said)))
    assert told == Told(Held(NotificationId(7), Fence(3)), KEY, outcome)


@pytest.mark.parametrize("kind", ["Unheard", "", None, 5, ["Send"]])
def test_what_nobody_knows_says_nothing(kind: Any) -> None:
    assert told_by({**event("Send"), "eventType": kind}) is None


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        (NOTIFICATION_TAG, []),
        (NOTIFICATION_TAG, ["7", "8"]),
        (NOTIFICATION_TAG, "7"),
        (NOTIFICATION_TAG, ["-7"]),
        (NOTIFICATION_TAG, ["9" * 30]),
        (NOTIFICATION_TAG, ["\u0667"]),
        (KEY_TAG, ["no key"]),
        (KEY_TAG, None),
    ],
)
def test_an_event_that_names_no_attempt_of_ours_is_passed_over(tag: str, value: Any) -> None:
    said = event("Send")
    said["mail"]["tags"][tag] = value
    assert told_by(said) is None


def test_nothing_private_is_told() -> None:
    """G10: neither the address nor what a server said about it."""
    said = event(
        "Bounce", bounce={"bounceType": "ann@mail.example", "bounceSubType": "ann@mail.example"}
    )
    assert "ann" not in repr(told_by(said))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@effort(deadline=None)
@given(mail=JSON, bounce=JSON, kind=st.sampled_from(["Send", "Bounce", "Complaint"]))
def test_no_event_breaks_its_reader(mail: Any, bounce: Any, kind: str) -> None:
    told_by({"eventType": kind, "mail": mail, "bounce": bounce, "complaint": bounce})
    told_by({**event(kind), "bounce": bounce, "complaint": bounce})
