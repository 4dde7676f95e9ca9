"""Messages and records as SQS would bring them, and the backfill function loaded as Lambda does."""

import importlib.util
import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
Function = Callable[..., dict[str, Any]]


def load(function: str) -> Function:
    """The function's handler, from its file."""
    file = ROOT / "functions" / function / "handler.py"
    spec = importlib.util.spec_from_file_location(f"{function}_handler", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Function = module.handler
    return handler


def command(name: str, id: str | None = None, **words: Any) -> dict[str, Any]:
    return {"version": 1, "command": name, "id": id or str(uuid.uuid4()), **words}


def enqueue(count: int, *, first: int = 1, id: str | None = None, **words: Any) -> dict[str, Any]:
    return command("enqueue", id, rows=[row(first + number) for number in range(count)], **words)


def row(number: int) -> dict[str, Any]:
    return {"channel": "way", "recipient": f"recipient {number}", "payload": {"title": "hello"}}


def batch(*bodies: Mapping[str, Any] | str) -> dict[str, Any]:
    """The event of these messages, whose ids are their places."""
    return {"Records": [record(place, body) for place, body in enumerate(bodies)]}


def record(place: int, body: Mapping[str, Any] | str) -> dict[str, Any]:
    return {
        "messageId": str(place),
        "receiptHandle": f"receipt-{place}",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:backfill",
        "awsRegion": "eu-central-1",
    }


def failed(answer: Mapping[str, Any]) -> list[str]:
    """Ids of the messages that come back."""
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]
