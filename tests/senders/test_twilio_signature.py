"""X-Twilio-Signature, by the vectors Twilio publishes with its documentation and its libraries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.senders.twilio_signature import is_signed, signature_of

TOKEN = "12345"
URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
FORM = {
    "CallSid": "CA1234567890ABCDE",
    "Caller": "+14158675309",
    "Digits": "1234",
    "From": "+14158675309",
    "To": "+18005551212",
}
SIGNATURE = "RSOYDt4T1cUTdK1PDd93/VVr8B8="
REPEATED = (
    ("Sid", "CA123"),
    ("SidAccount", "AC123"),
    ("Digits", "5678"),
    ("Digits", "1234"),
    ("Digits", "1234"),
)


def test_the_documented_example() -> None:
    assert signature_of(TOKEN, URL, FORM.items()) == SIGNATURE
    assert is_signed(TOKEN, URL, FORM.items(), SIGNATURE)


def test_the_order_of_the_fields_does_not_matter() -> None:
    assert is_signed(TOKEN, URL, reversed(FORM.items()), SIGNATURE)


def test_fields_that_are_there_twice() -> None:
    assert is_signed(TOKEN, URL, REPEATED, "IK+Dwps556ElfBT0I3Rgjkr1wJU=")


@pytest.mark.parametrize(
    ("signed", "called"),
    [
        ("https://mycompany.com/x?a=1", "https://mycompany.com:443/x?a=1"),
        ("https://mycompany.com:443/x?a=1", "https://mycompany.com/x?a=1"),
        ("http://mycompany.com:80/x", "http://mycompany.com/x"),
    ],
)
def test_with_and_without_its_port(signed: str, called: str) -> None:
    assert is_signed(TOKEN, called, FORM.items(), signature_of(TOKEN, signed, FORM.items()))


@pytest.mark.parametrize("signature", [None, "", "FAIL", SIGNATURE.lower(), "ä"])
def test_any_other_signature_is_refused(signature: str | None) -> None:
    assert not is_signed(TOKEN, URL, FORM.items(), signature)


def test_without_a_token_nothing_is_signed() -> None:
    assert not is_signed("", URL, FORM.items(), signature_of("", URL, FORM.items()))


@given(changed=st.sampled_from([*FORM, "url"]), by=st.text(min_size=1, max_size=5))
def test_whatever_is_changed_it_is_refused(changed: str, by: str) -> None:
    by = by.encode(errors="replace").decode()
    form = {**FORM, changed: FORM[changed] + by} if changed in FORM else FORM
    url = URL + by if changed == "url" else URL
    assert not is_signed(TOKEN, url, form.items(), SIGNATURE)
