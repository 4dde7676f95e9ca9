"""Twilio's status callbacks, over a function URL: each is evidence of one attempt."""

from typing import Any

from fencepost.bootstrap import callback


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Answer one call (payload format 2.0) with its status."""
    return callback(event)
