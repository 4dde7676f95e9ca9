"""The collector of cycles seldom looks while a worker runs: so a send must leave nothing that only it could free."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
SENDS = 200


def test_a_send_leaves_no_cycles(
    ground: Ground, deliver: Callable[..., dict[str, Any]], tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.enqueue(1)
    deliver(tick, Context())  # what a first run loads and keeps
    ground.enqueue(SENDS)
    gc.collect()
    gc.disable()
    try:
        summary = deliver(tick, Context())
        found = gc.collect()
    finally:
        gc.enable()
    assert summary["delivered"] == SENDS
    assert found < SENDS / 4  # a run may leave some, a send none
    assert gc.get_threshold()[0] > 1000  # and so it seldom looks
