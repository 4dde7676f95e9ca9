"""Retry-After in every form seen in the wild (D47, Q42)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.senders.retry_after import ABSURD_SECONDS, retry_after_seconds

NOW = "Wed, 21 Oct 2037 07:28:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        (" 60 ", 60.0),
        ("007", 7.0),
        (str(int(ABSURD_SECONDS)), ABSURD_SECONDS),
        ("Wed, 21 Oct 2037 07:29:00 GMT", 60.0),
        ("Wednesday, 21-Oct-37 07:29:00 GMT", 60.0),
        ("Wed Oct 21 07:29:00 2037", 60.0),
        ("Wed, 21 Oct 2037 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2037 07:00:00 GMT", 0.0),  # past: now
    ],
)
def test_what_makes_sense(value: str, seconds: float) -> None:
    assert retry_after_seconds(value, date=NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None, "", " ", "-5", "-3", "+5", "1.5", "1e9", "1e3", "abc", "NaN", "inf", "0x10", "٣", "12 s", "5, 10",
        "9999999999", "99999999999999999999", str(int(ABSURD_SECONDS) + 1), "2037-10-21",
        "Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 99 Oct 2037 07:28:00 GMT", "Wed, 21 Oct 2037", "07:28:00",
        "Wed, 21 Oct 99999 07:28:00 GMT", "Wednesday", "\x00",
    ],
)  # fmt: skip
def test_what_makes_none(value: str | None) -> None:
    assert retry_after_seconds(value, date=NOW) is None


@pytest.mark.parametrize("date", [None, "", "yesterday", "-3"])
def test_a_date_without_the_servers_clock_says_nothing(date: str | None) -> None:
    assert retry_after_seconds("Wed, 21 Oct 2037 07:29:00 GMT", date=date) is None
    assert retry_after_seconds("60", date=date) == 60.0


@settings(deadline=None)  # a busy machine is no failure
@given(value=st.text(), date=st.one_of(st.none(), st.text(), st.just(NOW)))
def test_no_text_makes_it_fail(value: str, date: str | None) -> None:
    seconds = retry_after_seconds(value, date=date)
    assert seconds is None or 0 <= seconds <= ABSURD_SECONDS
