"""The deploy step: the schema up to date, as CloudFormation's custom resource or invoked by hand."""

from typing import Any

from fencepost.bootstrap import migrate


def handler(event: dict[str, Any], context: Any) -> dict[str, object]:
    """Bring the schema up to date and answer what was done. No other function ever migrates."""
    return migrate(event, remaining_seconds=context.get_remaining_time_in_millis() / 1000)
