"""The vocabulary of the payload: what it takes, what it refuses, and that its page says the same."""

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from fencepost.core.payload import VOCABULARY, payload_fault, payload_text, text_fault

PAGE = Path(__file__).parents[2] / "docs" / "payload.md"

GOOD: list[dict[str, Any]] = [
    {},
    {"title": "", "body": "b", "html": "<b>b</b>", "url": "u", "image": "i", "icon": "i"},
    {"sound": "s", "thread": "t", "category": "c", "type": "invoice.paid", "urgency": "high"},
    {"badge": 0},
    {"badge": 99_999},
    {"badge": 3.0},
    {"silent": False},
    {"collapse": "é" * 32},
    {"data": {"deep": [{"er": [None, True, 1.5, "x", 10**300]}], "": "empty key"}},
    {"data": MappingProxyType({"a": (1, 2)})},
    {"raw": {}},
    {"raw": {"fcm": {"android": {"ttl": "3s"}}, "webhook": {}}},
    {"title": "\\u0000 is not that character", "body": "👩🏽‍🚀 é \t \x7f \u2028"},
]
BAD: list[tuple[Any, str]] = [
    (None, "payload: must be a JSON object"),
    ([], "payload: must be a JSON object"),
    ("{}", "payload: must be a JSON object"),
    ({"tite": "x"}, 'payload: unknown key "tite"'),
    ({"k" * 99: 1}, f'payload: unknown key "{"k" * 60}"'),
    ({1: "x"}, "payload: a key is int, and JSON keys are strings"),
    ({"title\0": "x"}, "payload: a key holds the character U+0000"),
    ({"data": {"a": {"\ud800": 1}}}, "payload.data: a key holds a lone surrogate"),
    ({"title": None}, "payload.title: must be a string"),
    ({"title": ["x"]}, "payload.title: must be a string"),
    ({"urgency": 1}, "payload.urgency: must be a string"),
    ({"urgency": "urgent"}, "payload.urgency: must be low, normal or high"),
    ({"title": "a\0"}, "payload.title: holds the character U+0000"),
    ({"data": {"a": ["\udfff"]}}, "payload.data: holds a lone surrogate"),
    ({"collapse": "é" * 33}, "payload.collapse: longer than 64 bytes"),
    ({"badge": -1}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": 100_000}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": 1.5}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": "3"}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": True}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": [3]}, "payload.badge: must be a whole number from 0 to 99999"),
    ({"badge": float("inf")}, "payload.badge: no number JSON can carry"),
    ({"data": {"a": float("nan")}}, "payload.data: no number JSON can carry"),
    ({"data": {"a": 10**5000}}, "payload.data: no number JSON can carry"),
    ({"data": {"a": b"x"}}, "payload.data: bytes has no JSON form"),
    ({"data": {"a": {1, 2}}}, "payload.data: set has no JSON form"),
    ({"data": []}, "payload.data: must be an object"),
    ({"silent": "yes"}, "payload.silent: must be true or false"),
    ({"silent": 1}, "payload.silent: must be true or false"),
    ({"raw": {"fcm": "x"}}, "payload.raw: must be an object of one object for each sender"),
    ({"raw": [{}]}, "payload.raw: must be an object of one object for each sender"),
]


@pytest.mark.parametrize("payload", GOOD)
def test_what_the_vocabulary_takes(payload: dict[str, Any]) -> None:
    assert payload_fault(payload) is None
    expected = {**payload, "data": {"a": [1, 2]}} if "a" in payload.get("data", {}) else payload
    assert json.loads(payload_text(payload)) == expected


@pytest.mark.parametrize(("payload", "fault"), BAD, ids=[fault for _, fault in BAD])
def test_what_it_refuses_by_field(payload: Any, fault: str) -> None:
    assert payload_fault(payload) == fault


def test_nesting_ends_before_the_stack_does() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert payload_fault({"data": {"deep": deep}}) == "payload: nested deeper than 100"


def test_a_text_is_one_a_database_can_keep() -> None:
    assert text_fault("é😀\n") is None
    assert text_fault("\0") == "holds the character U+0000"
    assert text_fault("😀".encode("utf-16", "surrogatepass")[2:4].decode("utf-16", "surrogatepass"))


def test_the_page_tells_the_same_vocabulary_in_the_same_order() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]
    assert cells == [(f"`{key.name}`", key.form, key.meaning) for key in VOCABULARY]


def test_the_example_of_the_page_is_good() -> None:
    _, _, rest = PAGE.read_text().partition("```json\n")
    example, _, _ = rest.partition("```")
    assert payload_fault(json.loads(example)) is None
