"""One object over another, as a `raw` block goes over what a sender makes of the vocabulary."""

from collections.abc import Mapping
from typing import Any


def merged(ours: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged key by key, however deep; all else is replaced."""
    result = dict(ours)
    for key, value in over.items():
        known = result.get(key)
        both = isinstance(known, Mapping) and isinstance(value, Mapping)
        result[key] = merged(known, value) if both else value  # type: ignore[arg-type]
    return result
