"""An event of a text message says which attempt it is about and what became of it."""

import json
from typing import Any
from uuid import UUID

import pytest
from botocore.session import Session
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from fencepost.core.callback import Callback
from fencepost.core.notification import AttemptOutcome
from fencepost.core.outcome import Unregistered
from fencepost.senders import aws_sms_event
from fencepost.senders.aws.event import callbacks_in
from fencepost.senders.aws.tags import KEY_TAG, NOTIFICATION_TAG, tags_of
from tests.core.rows import a_claimed

KEY = UUID("9f0c6f0e-8b4e-4b0a-9d6c-0c3a6a3a4f11")
TEXT = a_claimed(7, 3, idempotency_key=KEY, attempts=2)
DELIVERED, REJECTED = AttemptOutcome.DELIVERED, AttemptOutcome.REJECTED
TYPES = Session().get_service_model("pinpoint-sms-voice-v2").shape_for("EventType").enum


def event(kind: str, **changes: Any) -> dict[str, Any]:
    """As the guide shows one."""
    return {
        "eventType": kind,
        "eventVersion": "1.0",
        "eventTimestamp": 1686975103470,
        "isFinal": True,
        "originationPhoneNumber": "+12065550152",
        "destinationPhoneNumber": "+14255550156",
        "messageId": "862a8790-60c0",
        "messageStatus": kind.removeprefix("TEXT_"),
        "context": {**tags_of(TEXT), "order": "7"},
        "totalMessageParts": 1,
        **changes,
    }


def by_sns(said: dict[str, Any]) -> str:
    topic = "arn:aws:sns:eu-central-1:123456789012:texts"
    return json.dumps({"Type": "Notification", "TopicArn": topic, "Message": json.dumps(said)})


def told(outcome: AttemptOutcome, **words: Any) -> Callback:
    return Callback(held=TEXT.held, key=KEY, outcome=outcome, **words)


@pytest.mark.parametrize("travel", [json.dumps, by_sns])
@pytest.mark.parametrize(
    ("kind", "callback"),
    [
        *(
            (f"TEXT_{kind}", told(DELIVERED, reference="862a8790-60c0"))
            for kind in ("SENT", "PENDING", "QUEUED", "SUCCESSFUL", "DELIVERED")
        ),
        *(
            (f"TEXT_{kind}", told(DELIVERED, detail=f"event TEXT_{kind}"))
            for kind in ("UNREACHABLE", "CARRIER_UNREACHABLE", "TTL_EXPIRED", "UNKNOWN")
        ),
        *(
            (f"TEXT_{kind}", told(DELIVERED, detail=f"event TEXT_{kind}"))
            for kind in ("BLOCKED", "CARRIER_BLOCKED", "SPAM")
        ),
        *(
            (f"TEXT_{kind}", told(REJECTED, detail=f"event TEXT_{kind}"))
            for kind in ("INVALID_MESSAGE", "PROTECT_BLOCKED")
        ),
        (
            "TEXT_INVALID",
            told(
                DELIVERED,
                detail="event TEXT_INVALID",
                gone=Unregistered("event TEXT_INVALID", 1686975103.47),
            ),
        ),
    ],
)
def test_each_event_is_evidence(travel: Any, kind: str, callback: Callback) -> None:
    assert callbacks_in(travel(event(kind))) == (callback,)


def test_every_kind_of_text_event_is_known() -> None:
    known = {*aws_sms_event.TAKEN, *aws_sms_event.LOST, *aws_sms_event.REFUSED, "INVALID"}
    assert {one for one in TYPES if one.startswith("TEXT_")} - {"TEXT_ALL"} == {
        f"TEXT_{one}" for one in known
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"context": {}},
        {"context": None},
        {"context": {**tags_of(TEXT), KEY_TAG: "x"}},
        {"context": {**tags_of(TEXT), NOTIFICATION_TAG: "-7"}},
        {"context": {**tags_of(TEXT), NOTIFICATION_TAG: 7}},
        {"eventType": "TEXT_NEW_ONE"},
    ],
)
def test_a_text_of_somebody_else_tells_nothing_and_is_no_bad_message(
    changes: dict[str, Any],
) -> None:
    assert callbacks_in(json.dumps({**event("TEXT_SENT"), **changes})) == ()


@pytest.mark.parametrize("at", [None, True, "soon", -5, 1e300])
def test_an_instant_that_is_none_is_left_out(at: object) -> None:
    (found,) = callbacks_in(json.dumps(event("TEXT_INVALID", eventTimestamp=at))) or ()
    assert found.gone == Unregistered("event TEXT_INVALID", None)


@effort(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from(["eventType", "messageId", "context", "mail", "Type", "Message"]),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
            max_leaves=4,
        ),
    )
)
def test_whatever_it_holds_nothing_breaks(said: dict[str, Any]) -> None:
    for one in callbacks_in(json.dumps({**event("TEXT_SENT"), **said})) or ():
        assert (one.held, one.key) == (TEXT.held, KEY)
