"""What came back from a send: data, not yet a meaning."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class Phase(StrEnum):
    """How far a send got, known by the one who dialled."""

    NOT_SENT = "not_sent"  # DNS, connect, TLS, refused stream, above GOAWAY's last id, pool wait
    UNCERTAIN = "uncertain"  # a byte of the request left and no full response head came
    ANSWERED = "answered"


class Reply(Struct, frozen=True, kw_only=True):
    """`status`, `headers` (lower case names) and `body` (capped at 64 KiB) only when answered."""

    phase: Phase
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    reason: str = ""  # short code of what went wrong (senders/trouble.py); "" where nothing did
    error: str = ""  # one line, without recipient or payload
    took_seconds: float = 0.0
