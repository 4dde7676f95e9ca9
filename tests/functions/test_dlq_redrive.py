"""Messages that come back out of the DLQ, once what stopped them was mended: done, and done once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functions.backfill_ground import batch, enqueue, failed
from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
Function = Callable[..., dict[str, Any]]
RECEIVES_MAX = 5
ENQUEUED = "select count(*) from fencepost.notification"


def received(times: int, *bodies: dict[str, Any]) -> dict[str, Any]:
    """A batch whose messages were received so often, throttled invocations counted too."""
    event = batch(*bodies)
    for record in event["Records"]:
        record["attributes"]["ApproximateReceiveCount"] = str(times)
    return event


def test_however_often_it_was_received_it_is_done_once(ground: Ground, backfill: Function) -> None:
    """Throttles spend receive counts: what ends in a DLQ may never have been tried, or have been done already."""
    rows = enqueue(3)
    for times in range(1, RECEIVES_MAX + 1):
        assert failed(backfill(received(times, rows), Context())) == ["0"], "no such channel yet"
    ground.channel()
    assert failed(backfill(received(RECEIVES_MAX + 1, rows), Context())) == []
    assert failed(backfill(received(9, rows, rows), Context())) == []
    assert ground.number(ENQUEUED) == 3
