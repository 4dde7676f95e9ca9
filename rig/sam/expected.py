"""What is expected of an event: declared in events/expected/NAME.toml, compared by pure functions."""

import contextlib
import json
import tomllib
from collections import Counter
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

    `database` is what the event finds: `empty` (no schema), `due` (notifications.toml) or another event's name: what
    that one left. `due`: so many more are due. `objects`: files in S3, by bucket/key. `times`: the event comes so
    often, one after the other, and each time `answer` must hold: members of what the function returns. `after`:
    numbers of the account at the end. `actions`: how often the log names each of these, all invocations together."""

    function: str
    database: str = "tick"
    due: int = 0
    objects: dict[str, str] = {}
    times: int = 1
    answer: dict[str, Any] = {}
    after: dict[str, int] = {}
    actions: dict[str, int] = {}


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
        *_numbers(expected.actions, _actions(found.log)),
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
        if _unordered(answer.get(name)) != _unordered(value)
    ]


def _unordered(value: Any) -> Any:
    """The failures of a batch are a set, as Lambda reads them."""
    return sorted(value, key=repr) if isinstance(value, list) else value


def _numbers(expected: Mapping[str, int], account: Mapping[str, int]) -> list[str]:
    return [
        f"{name} is {account.get(name)}, not {number}"
        for name, number in expected.items()
        if account.get(name) != number
    ]


def _actions(log: str) -> Mapping[str, int]:
    """How often each action is named: by the lines that are JSON, whoever else wrote between them."""
    counted: Counter[str] = Counter()
    for line in log.splitlines():
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and "action" in said:
                counted[said["action"]] += 1
    return counted


def in_order(declared: Mapping[str, Expected]) -> list[str]:
    """Names so that each comes after the one whose database it wants. Raises RuntimeError where there is none such."""
    placed: list[str] = []
    while waiting := [name for name in sorted(declared) if name not in placed]:
        ready = [n for n in waiting if declared[n].database in ("empty", "due", *placed)]
        if not ready:
            raise RuntimeError(f"events/expected: no event leaves what {waiting[0]} wants to find")
        placed.append(ready[0])
    return placed
