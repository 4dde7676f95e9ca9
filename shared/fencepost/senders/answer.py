"""What a provider answered, read without trust: an answer may be cut, empty, or a proxy's page."""

import json
import re
from collections.abc import Mapping
from typing import Any

CODE = re.compile(r"[A-Za-z0-9_.:-]{1,60}", re.ASCII)


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
