"""The payload's vocabulary for providers that show text (docs/payload.md), and the block that goes past it."""

from collections.abc import Mapping
from typing import Any

SHOWN = ("title", "body", "url")


def plain_text(payload: Mapping[str, Any]) -> str:
    """Title, body and url, a line each, as far as they are there. Nothing is cut."""
    return "\n".join(str(payload[key]) for key in SHOWN if payload.get(key))


def raw_block(payload: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """What the payload's `raw` has for this sender kind."""
    raw = payload.get("raw")
    block = raw.get(kind) if isinstance(raw, Mapping) else None
    return block if isinstance(block, Mapping) else {}


def laid_over(said: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """`block` over what we say: object into object, everything else replaces; null takes a key away (RFC 7396)."""
    over = {name: value for name, value in said.items() if name not in block}
    for name, value in block.items():
        if isinstance(value, Mapping):
            ours = said.get(name)
            over[name] = laid_over(ours if isinstance(ours, Mapping) else {}, value)
        elif value is not None:
            over[name] = value
    return over
