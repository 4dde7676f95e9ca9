"""What is expected of an event: declared in events/expected/NAME.toml, compared by pure functions."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

# Whatever the event: nothing is lost, held, doubled or forged.
ALWAYS: Mapping[str, int] = {
    "misplaced": 0,  # notifications that are neither open nor closed, or both
    "leased": 0,
    "unended_runs": 0,
    "conflicts": 0,
    "duplicate_effects": 0,
    "changed_keys": 0,
    "changed_bodies": 0,
    "refused_signatures": 0,
}


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event's file.

    `database`: `empty` has no schema; `due` is migrated, with rig/sam/notifications.toml due; `ticked` is what
    events/tick.json made of that. `due`: so many more, due. `answer`: members of what the function returns. `after`:
    numbers of the account. `log`: what the log must say. `messages`: bodies that the function sent to the queue,
    by members."""

    function: str
    database: str = "ticked"
    due: int = 0
    answer: dict[str, Any] = {}
    after: dict[str, int] = {}
    log: list[str] = []
    objects: dict[str, str] = {}  # S3 objects by bucket/key: their lines
    times: int = 1  # the same event again: it must change nothing more


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was seen after an event."""

    answer: Any
    log: str
    account: Mapping[str, int]
    secrets: tuple[str, ...] = field(default=(), repr=False)  # must not be in any log


def read_expected(file: Path) -> Expected:
    return msgspec.convert(tomllib.loads(file.read_text()), Expected)


def differences(expected: Expected, found: Found) -> list[str]:
    """Each a sentence. None: it was as declared."""
    return [
        *_answers(expected.answer, found.answer),
        *_numbers({**ALWAYS, **expected.after}, found.account),
        *(f"the log does not say {text!r}" for text in expected.log if text not in found.log),
        *(
            "the log shows a secret, a recipient or a payload"
            for s in found.secrets
            if s in found.log
        ),
    ]


def _answers(expected: Mapping[str, Any], answer: Any) -> list[str]:
    if not isinstance(answer, dict):
        return [f"the function returned {answer!r}"]
    if "errorType" in answer and "errorType" not in expected:
        return [f"the function failed: {answer['errorType']}: {answer.get('errorMessage')}"]
    return [
        f"answer.{name} is {answer.get(name)!r}, not {value!r}"
        for name, value in expected.items()
        if answer.get(name) != value
    ]


def _numbers(expected: Mapping[str, int], account: Mapping[str, int]) -> list[str]:
    return [
        f"{name} is {account.get(name)}, not {number}"
        for name, number in expected.items()
        if account.get(name) != number
    ]
