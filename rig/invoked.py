"""How an invocation of a Lambda runtime ended, read from the emulator's answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """How an invocation ended. `summary` is what the function returned; else one of the others says why not."""

    summary: Mapping[str, Any] | None = None
    timed_out: bool = False  # SIGKILL at the function's timeout
    died: bool = False  # the interpreter ended in mid-invocation (exit, signal)
    error: str | None = None  # one line
    took_seconds: float = 0.0


def read_answer(status: int, body: bytes, took_seconds: float) -> Invoked:
    """What the emulator's answer says. A timeout is plain text with status 200."""
    try:
        answer = json.loads(body)
    except ValueError:
        text = body.decode(errors="replace").strip()
        return Invoked(timed_out="timed out" in text, error=text, took_seconds=took_seconds)
    if isinstance(answer, dict) and "errorType" in answer:
        died = answer["errorType"] == "Runtime.ExitError"
        error = f"{answer['errorType']}: {answer.get('errorMessage', '')}"
        return Invoked(died=died, error=error, took_seconds=took_seconds)
    if status != 200 or not isinstance(answer, dict):
        return Invoked(error=f"answer {status}: {body[:200]!r}", took_seconds=took_seconds)
    return Invoked(summary=answer, took_seconds=took_seconds)
