"""The payload: one vocabulary for all channels. docs/payload.md tells it to people, payload_fault_() to the database.

Every sender takes from it what its provider knows and passes over the rest; what only one provider knows goes into
`raw`, in a block under that sender's kind. Faults name the field and never quote a value.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

BADGE_MAX = 99_999
COLLAPSE_BYTES_MAX = 64  # APNs takes no longer one; senders hash it where the provider takes less
DEPTH_MAX = 100
INTEGER_BITS_MAX = 1024
URGENCIES = ("low", "normal", "high")


class Key(Struct, frozen=True):
    """A top-level key: the form its value must have, in words, and what it says to the recipient."""

    name: str
    form: str
    meaning: str


TEXT = "a string"
VOCABULARY = (
    Key("title", TEXT, "headline of a push, subject of a mail"),
    Key("body", TEXT, "what is said, in plain text"),
    Key("html", TEXT, "the same for mail as HTML; others take `body`"),
    Key("url", TEXT, "where a tap or a click leads"),
    Key("image", TEXT, "URL of a picture shown with it"),
    Key("icon", TEXT, "URL or name of a small picture"),
    Key("sound", TEXT, "name of the sound; left out: silent or the device's choice"),
    Key("collapse", "a string of at most 64 bytes", "a later one with the same replaces it"),
    Key("thread", TEXT, "shown together with others of the same thread"),
    Key("category", TEXT, "kind the app knows: iOS category, Android channel"),
    Key("type", TEXT, "name of the event, for webhooks: `invoice.paid`"),
    Key(
        "urgency",
        "low, normal or high",
        "may the provider wait for a good moment; left out: normal",
    ),
    Key("badge", "a whole number from 0 to 99999", "number on the app's icon; 0 takes it away"),
    Key("silent", "true or false", "wakes the app and shows nothing"),
    Key("data", "an object", "for the app or the receiver, not shown"),
    Key("raw", "an object of one object for each sender", "by sender kind, past the vocabulary"),
)
KEYS = frozenset(key.name for key in VOCABULARY)
OTHER_THAN_TEXT = ("badge", "silent", "data", "raw")


def payload_fault(payload: object) -> str | None:
    """Why this payload would be refused, as "payload.badge: must be …"; None: it would not (size apart)."""
    if not isinstance(payload, Mapping):
        return "payload: must be a JSON object"
    return next(_faults(payload), None)


def text_fault(text: str) -> str | None:
    """Why the database could not keep this text; None: it could."""
    if "\0" in text:
        return "holds the character U+0000"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds a lone surrogate"
    return None


def payload_text(payload: Mapping[str, Any]) -> str:
    """As JSON text. Only for a payload without fault."""
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, default=dict)


def _faults(payload: Mapping[Any, Any]) -> Iterator[str]:
    yield from _unstorable(payload, "payload", 0)
    unknown = sorted(key for key in payload if key not in KEYS)
    if unknown:
        yield f"payload: unknown key {json.dumps(unknown[0][:60])}"
    for key in sorted(payload.keys() - set(OTHER_THAN_TEXT)):
        if not isinstance(payload[key], str):
            yield f"payload.{key}: must be a string"
    for name, fits, must in _FORMS:
        if name in payload and not fits(payload[name]):
            yield f"payload.{name}: {must}"


def _unstorable(value: object, where: str, depth: int) -> Iterator[str]:
    """What has no JSON form, or one that jsonb refuses."""
    match value:
        case _ if depth > DEPTH_MAX:
            yield f"payload: nested deeper than {DEPTH_MAX}"
        case str():
            if fault := text_fault(value):
                yield f"{where}: {fault}"
        case bool() | None:
            pass
        case int() | float():
            if not _storable_number(value):
                yield f"{where}: no number JSON can carry"
        case Mapping():
            yield from _unstorable_members(value, where, depth)
        case list() | tuple():
            for item in value:
                yield from _unstorable(item, where, depth + 1)
        case _:
            yield f"{where}: {type(value).__name__} has no JSON form"


def _unstorable_members(members: Mapping[Any, Any], where: str, depth: int) -> Iterator[str]:
    for key, value in members.items():
        if not isinstance(key, str):
            yield f"{where}: a key is {type(key).__name__}, and JSON keys are strings"
        elif fault := text_fault(key):
            yield f"{where}: a key {fault}"
        else:
            inner = f"payload.{key}" if depth == 0 and key in KEYS else where
            yield from _unstorable(value, inner, depth + 1)


def _storable_number(value: float) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= INTEGER_BITS_MAX
    return math.isfinite(value)


def _badge(value: object) -> bool:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return whole and 0 <= value <= BADGE_MAX  # type: ignore[operator]


def _raw(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(v, Mapping) for v in value.values())


_FORMS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("badge", _badge, f"must be a whole number from 0 to {BADGE_MAX}"),
    ("silent", lambda value: isinstance(value, bool), "must be true or false"),
    ("data", lambda value: isinstance(value, Mapping), "must be an object"),
    ("raw", _raw, "must be an object of one object for each sender"),
    ("urgency", lambda value: value in URGENCIES, f"must be {', '.join(URGENCIES[:-1])} or high"),
    (
        "collapse",
        lambda value: len(value.encode()) <= COLLAPSE_BYTES_MAX,
        f"longer than {COLLAPSE_BYTES_MAX} bytes",
    ),
)
