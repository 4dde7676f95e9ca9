"""The deploy step, decided; and CloudFormation's events and answers, read and written."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from fencepost.core.deployment import (
    Apply,
    Concurrency,
    LeaveAlone,
    Mode,
    Refuse,
    Standing,
    Step,
    Wanted,
    next_step,
    read_wanted,
)
from fencepost.core.stack_event import (
    ANSWER_BYTES_MAX,
    StackAnswer,
    StackEvent,
    StackEventInvalid,
    answer_body,
    read_stack_event,
)

EVENT: dict[str, Any] = {
    "RequestType": "Update",
    "ResponseURL": "https://example.com/answer?signed",
    "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/fencepost/5f2c",
    "RequestId": "request-7",
    "LogicalResourceId": "Schema",
    "PhysicalResourceId": "5f2c-Schema",
    "ResourceProperties": {"Mode": "check"},
}
OURS = "production"


def standing(
    bound_to: str | None = OURS,
    pending: tuple[str, ...] = (),
    newer: tuple[str, ...] = (),
    changed: tuple[str, ...] = (),
) -> Standing:
    return Standing(bound_to=bound_to, pending=pending, newer=newer, changed=changed)


def wanted(mode: Mode = Mode.APPLY, limits: Concurrency | None = None) -> Wanted:
    return Wanted(installation=OURS, mode=mode, concurrency=limits)


NEW, PENDING, NEWER, CHANGED = ("001",), ("041",), ("999",), ("020",)
TOO_MANY = Concurrency(runs=5, backfills=2, connections_max=9)
JUST_ENOUGH = Concurrency(runs=5, backfills=2, connections_max=10)
STEPS: list[tuple[Standing, Wanted, type[Step]]] = [
    (standing(None, NEW), wanted(), Apply),
    (standing(None), wanted(), Apply),
    (standing(OURS, PENDING), wanted(), Apply),
    (standing(), wanted(), Apply),  # grants are renewed in every deploy
    (standing("staging", PENDING), wanted(), Refuse),
    (standing("staging", newer=NEWER), wanted(), Refuse),
    (standing(newer=NEWER), wanted(), LeaveAlone),
    (
        standing(newer=NEWER),
        wanted(limits=TOO_MANY),
        LeaveAlone,
    ),  # a rollback must never be stopped
    (standing(pending=PENDING), wanted(limits=TOO_MANY), Refuse),
    (standing(pending=PENDING), wanted(limits=JUST_ENOUGH), Apply),
    (standing(pending=PENDING), wanted(Mode.CHECK), Refuse),
    (standing(pending=PENDING, changed=CHANGED), wanted(), Refuse),
    (standing(changed=CHANGED), wanted(Mode.CHECK), Refuse),
    (standing(None), wanted(Mode.CHECK), Refuse),
    (standing(), wanted(Mode.CHECK), LeaveAlone),
]


@pytest.mark.parametrize(("stands", "asked", "step"), STEPS)
def test_the_step_follows_from_how_the_database_stands(
    stands: Standing, asked: Wanted, step: type[Step]
) -> None:
    assert isinstance(next_step(stands, asked), step)


def test_the_properties_are_read_from_the_text_that_cloudformation_makes_of_them() -> None:
    properties = {"OverlapMax": "3", "BackfillConcurrency": "2", "ConnectionsMax": "10"}
    found = read_wanted(OURS, properties).concurrency
    assert found == Concurrency(runs=3, backfills=2, connections_max=10)
    assert found.connections == 3 + 2 * 2 + 1
    with_callbacks = read_wanted(OURS, {**properties, "CallbackConcurrency": "3"}).concurrency
    assert with_callbacks == replace(found, callbacks=3)
    assert with_callbacks.connections == found.connections + 3


def test_what_callbacks_hold_counts_and_is_named() -> None:
    refused = next_step(standing(), wanted(limits=replace(JUST_ENOUGH, callbacks=1)))
    assert isinstance(refused, Refuse)
    assert "CallbackConcurrency (1)" in refused.why
    assert "11 connections" in refused.why


def event(**changed: Any) -> StackEvent:
    found = read_stack_event({**EVENT, **changed})
    assert found is not None
    return found


def test_an_event_by_hand_is_none_of_cloudformations() -> None:
    assert read_stack_event({"Mode": "check"}) is None


@pytest.mark.parametrize("name", sorted(set(EVENT) - {"RequestType", "ResourceProperties"}))
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(StackEventInvalid, match=name):
        event(**{name: None})


@pytest.mark.parametrize(
    ("name", "value"), [("ResponseURL", "http://example.com"), ("RequestType", "Perhaps")]
)
def test_what_is_wrong_is_named(name: str, value: str) -> None:
    with pytest.raises(StackEventInvalid, match=name):
        event(**{name: value})


def test_the_identity_is_that_of_the_creation_for_ever() -> None:
    created = event(RequestType="Create", PhysicalResourceId=None)
    assert created.identity == event().identity == "5f2c-Schema"
    assert event(PhysicalResourceId="of an earlier code").identity == "of an earlier code"


@pytest.mark.parametrize("text", ["x" * 9000, "\u2028" * 3000, '"' * 5000, "ü\n" * 4000])
def test_an_answer_is_never_longer_than_what_is_read(text: str) -> None:
    body = answer_body(event(), StackAnswer(succeeded=False, reason=text))
    assert len(body) <= ANSWER_BYTES_MAX
    told = json.loads(body)
    assert (told["Status"], told["RequestId"]) == ("FAILED", "request-7")
    assert told["Reason"][:100] == text[:100]


def test_an_answer_of_usual_length_is_told_whole() -> None:
    answer = StackAnswer(succeeded=True, reason="up to date", told={"Applied": ""})
    assert json.loads(answer_body(event(), answer))["Reason"] == "up to date"


def test_the_signed_url_is_never_shown() -> None:
    assert "signed" not in repr(event())
