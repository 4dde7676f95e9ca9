"""What does not fit is told in words: what must stand there, and which names there are."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from fencepost.misfit import in_words

Name = Annotated[str, Meta(pattern="^[a-z]+$", description="small letters")]


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    count: Annotated[int, Meta(ge=1, le=9)] | None = None
    mode: Literal["on", "off"] = "on"
    label: Annotated[str, Meta(min_length=1)] = "x"
    headers: dict[Name, Annotated[float, Meta(gt=0)]] = {}
    few: Annotated[dict[str, str], Meta(max_length=1)] = {}
    hosts: tuple[Name, ...] = ()


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner
    text: str = ""
    flag: bool = False
    rate: Annotated[float, Meta(gt=0, le=31536000)] | None = None

    def __post_init__(self) -> None:
        if self.text == "odd":
            raise ValueError("text is odd")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "inner is missing"),
        ({"inner": 3}, "inner must be a table"),
        ({"inner": {"count": 0}}, "inner.count must be a whole number from 1 to 9"),
        ({"inner": {"count": "5"}}, "inner.count must be a whole number from 1 to 9"),
        ({"inner": {"mode": "maybe"}}, "inner.mode must be off or on"),
        ({"inner": {"mode": 3}}, "inner.mode must be off or on"),
        ({"inner": {"label": ""}}, "inner.label must be text, and not empty"),
        ({"inner": {"headers": {"A": 1}}}, "a name in inner.headers must be small letters"),
        ({"inner": {"headers": {"a": 0}}}, "a value in inner.headers must be a number above 0"),
        (
            {"inner": {"few": {"a": "", "b": ""}}},
            "inner.few must be a table of 1 names at most",
        ),
        ({"inner": {"hosts": ["a", "B"]}}, "inner.hosts[1] must be small letters"),
        ({"inner": {"hosts": "a"}}, "inner.hosts must be a list"),
        (
            {"inner": {"cuont": 1}},
            "there is no inner.cuont; known: count, mode, label, headers, few, hosts",
        ),
        ({"inner": {}, "more": 1}, "there is no more; known: inner, text, flag, rate"),
        ({"inner": {}, "text": 3}, "text must be text"),
        ({"inner": {}, "flag": "yes"}, "flag must be true or false"),
        ({"inner": {}, "rate": -1}, "rate must be a number above 0 and up to 31536000"),
        ({"inner": {}, "text": "odd"}, "text is odd"),
    ],
)
def test_words(value: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as wrong:
        msgspec.convert(value, Outer)
    assert in_words(str(wrong.value), Outer) == words


def test_what_is_no_misfit_stays_as_it_is() -> None:
    for error in ("the secret is no pair", "Expected `str` - at `$.nowhere`"):
        assert in_words(error, Outer) == error
        assert in_words(error, None) == error
