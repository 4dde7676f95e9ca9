"""EventBridge Scheduler's tick: one run."""

from typing import Any

from fencepost.bootstrap import deliver


def handler(event: dict[str, Any], context: Any) -> dict[str, object]:
    """Deliver what is due, and answer what came of it. The event's id ties logs and runs to this tick."""
    return deliver(
        remaining_seconds=context.get_remaining_time_in_millis() / 1000,
        correlation=str(event.get("id") or context.aws_request_id),
    )
