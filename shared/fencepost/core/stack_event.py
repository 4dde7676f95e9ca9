"""What CloudFormation says to a custom resource, and the answer it waits for. Pure.

It waits for an hour (or the resource's ServiceTimeout) unless exactly this JSON is PUT to the URL it gave. The URL is a
signed one: whoever has it may answer, so it is never shown.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

ANSWER_BYTES_MAX = 4096  # CloudFormation's limit for the whole body
CUT = " …"


class StackEventInvalid(ValueError):
    """An event that looks like CloudFormation's and lacks what it needs: one sentence naming it."""


class Change(StrEnum):
    """What CloudFormation does with the resource."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackEvent:
    """One request of CloudFormation's. `physical_id` None: the resource is being created."""

    change: Change
    response_url: str = field(repr=False)
    stack_id: str
    request_id: str
    logical_id: str
    physical_id: str | None
    properties: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """Kept for ever: another one would make CloudFormation delete the resource it thinks was replaced."""
        return self.physical_id or f"{self.stack_id.rpartition('/')[2]}-{self.logical_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackAnswer:
    """`reason` is what whoever deploys will read; `told` can be read with Fn::GetAtt."""

    succeeded: bool
    reason: str
    told: Mapping[str, str] = field(default_factory=dict)


def read_stack_event(event: Mapping[str, Any]) -> StackEvent | None:
    """None: it is not CloudFormation's, somebody invoked the function. Raises `StackEventInvalid`."""
    if "RequestType" not in event:
        return None
    try:
        change = Change(event["RequestType"])
    except ValueError:
        raise StackEventInvalid(f"RequestType is {str(event['RequestType'])[:40]!r}") from None
    url = _text(event, "ResponseURL")
    if not url.startswith("https://"):
        raise StackEventInvalid("ResponseURL does not start with https://")
    return StackEvent(
        change=change,
        response_url=url,
        stack_id=_text(event, "StackId"),
        request_id=_text(event, "RequestId"),
        logical_id=_text(event, "LogicalResourceId"),
        physical_id=None if change is Change.CREATE else _text(event, "PhysicalResourceId"),
        properties=event.get("ResourceProperties") or {},
    )


def answer_body(event: StackEvent, answer: StackAnswer) -> bytes:
    """The answer as CloudFormation reads it; a reason that would make it too long is cut."""
    room = ANSWER_BYTES_MAX - len(_body(event, answer, ""))
    reason = answer.reason
    if len(json.dumps(reason)) - 2 > room:
        reason = reason[: max((room - len(json.dumps(CUT))) // 6, 0)] + CUT  # an escaped one is six
    return _body(event, answer, reason)


def _body(event: StackEvent, answer: StackAnswer, reason: str) -> bytes:
    body = {
        "Status": "SUCCESS" if answer.succeeded else "FAILED",
        "Reason": reason,
        "PhysicalResourceId": event.identity,
        "StackId": event.stack_id,
        "RequestId": event.request_id,
        "LogicalResourceId": event.logical_id,
        "Data": dict(answer.told),
    }
    return json.dumps(body).encode()


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise StackEventInvalid(f"{name} is missing in CloudFormation's event")
    return value
