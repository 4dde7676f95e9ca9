"""What a provider answered, read without trust: an answer may be cut, empty, or a proxy's page."""

import json
import re
from collections.abc import Mapping
from typing import Any

from fencepost.core.outcome import Delivered, Uncertain
from fencepost.core.reply import Reply

CODE = re.compile(r"[A-Za-z0-9_.:-]{1,60}", re.ASCII)
REFERENCE = re.compile(r"[!-~]{1,200}", re.ASCII)


def read_object(body: bytes) -> Mapping[str, Any]:
    """The JSON object; empty where there is none."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def code_of(said: object) -> str:
    """An error code fit for the ledger: whatever does not look like one may quote the message (G10)."""
    text = str(said)
    return text if CODE.fullmatch(text) else "an unknown error"


def reference_of(said: object) -> str | None:
    """The provider's own id of a message, fit for the ledger; None for what does not look like one (G10)."""
    return said if isinstance(said, str) and REFERENCE.fullmatch(said) else None


def accepted(reply: Reply, reference: str | None, who: str) -> Delivered | Uncertain:
    """A 2xx of a provider that names every message it takes. All of an answer without a name is somebody else's."""
    if reference is None and not reply.reason:
        return Uncertain(f"answered {reply.status}, but not as {who} does")
    return Delivered(reference)
