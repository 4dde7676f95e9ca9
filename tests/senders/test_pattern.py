"""Settings that must look like something: who gets one wrong is told in words, for every kind and every setting."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from fencepost.senders.registry import OUR_OWN, fault_of, kind_of

NO_MATCH = "\0 \u00e9"


def patterned(type: Any) -> Iterator[Any]:
    """Wrong values for each pattern that hides in this type."""
    match type:
        case inspect.StrType(pattern=str()):
            yield NO_MATCH
        case inspect.Metadata(type=inner):
            yield from patterned(inner)
        case inspect.UnionType(types=types):
            for one in types:
                yield from patterned(one)
        case inspect.VarTupleType(item_type=item):
            yield from ([wrong] for wrong in patterned(item))
        case inspect.DictType(key_type=key, value_type=value):
            yield from ({wrong: "x"} for wrong in patterned(key))
            yield from ({"x": wrong} for wrong in patterned(value))


def wrong_settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in OUR_OWN:
        settings = kind_of(kind).settings
        if settings is not None:
            told = inspect.type_info(settings)
            assert isinstance(told, inspect.StructType)
            for one in told.fields:
                yield from ((kind, {one.encode_name: wrong}) for wrong in patterned(one.type))


@pytest.mark.parametrize(("kind", "settings"), list(wrong_settings()))
def test_each_setting_with_a_pattern_is_refused_in_words(
    kind: str, settings: dict[str, Any]
) -> None:
    (name,) = settings
    fault = fault_of(kind, settings, "env:SECRET")
    assert fault is not None
    assert "regex" not in fault
    assert name in fault
    assert " must be " in fault
    assert NO_MATCH not in fault


@pytest.mark.parametrize(
    ("kind", "settings", "fault"),
    [
        (
            "apns",
            {"topic": "shop", "team_id": "abc"},
            "team_id must be ten capital letters or digits",
        ),
        (
            "webpush",
            {"subject": "someone"},
            "subject must be mailto: and an address, or an https:// URL",
        ),
        (
            "webpush",
            {"subject": "mailto:a@b.test", "allowed_hosts": ["a.test", "https://b.test"]},
            "allowed_hosts[1] must be a host in small letters, or *. and a host",
        ),
        (
            "ses",
            {"from_address": "a@b.test", "headers": {"a b": "x"}},
            "a name in headers must be 1 to 126 ASCII characters without spaces and colons",
        ),
        (
            "ses",
            {"from_address": "a@b.test", "headers": {"x": "two\nlines"}},
            "a value in headers must be 1 to 870 ASCII characters on one line",
        ),
    ],
)
def test_the_words(kind: str, settings: dict[str, Any], fault: str) -> None:
    assert fault_of(kind, settings, "env:SECRET") == f"settings: {fault}"


def test_there_are_such_settings_in_more_than_half_of_the_kinds() -> None:
    assert len({kind for kind, _ in wrong_settings()}) >= 7
