"""A call of Twilio's taken apart: whose it is, and what it says; hostile ones are refused and never quoted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.callback import CallbackChannel, CallMalformed, Unverifiable
from fencepost.core.notification import AttemptOutcome
from fencepost.senders.twilio_call import BODY_BYTES_MAX, FIELDS_MAX, read_call
from fencepost.senders.twilio_signature import signature_of
from tests.senders.claimed import CLAIMED, KEY
from tests.senders.twilio_caller import ACCOUNT, BASE, SECRET, SETTINGS, SID, TOKEN, call, form_of

CHANNEL = CallbackChannel(name="web", settings=SETTINGS, secret_reference="env:TWILIO")
DELIVERED = form_of("delivered")


@pytest.mark.parametrize("in_base64", [True, False])
def test_what_twilio_signed_is_believed_and_tied_to_its_attempt(in_base64: bool) -> None:
    read = read_call(call(CLAIMED, DELIVERED, in_base64=in_base64))
    assert read.signed(CHANNEL, SECRET)
    told = read.told()
    assert told is not None
    assert (told.held, told.key) == (CLAIMED.held, KEY)
    assert (told.outcome, told.reference, told.gone) == (AttemptOutcome.DELIVERED, SID, None)


@pytest.mark.parametrize(
    ("status", "code", "outcome", "gone"),
    [
        ("queued", None, AttemptOutcome.DELIVERED, False),  # Twilio has it: nobody may send again
        ("sent", None, AttemptOutcome.DELIVERED, False),
        ("undelivered", "30005", AttemptOutcome.REJECTED, True),
        ("undelivered", "30007", AttemptOutcome.REJECTED, False),
        ("undelivered", "30003", AttemptOutcome.FAILED, False),
        ("failed", "30008", None, False),
    ],
)
def test_what_a_status_is_evidence_of(
    status: str, code: str | None, outcome: AttemptOutcome | None, gone: bool
) -> None:
    more = {"ErrorCode": code} if code else {}
    told = read_call(call(CLAIMED, form_of(status, **more))).told()
    assert told is not None
    assert (told.outcome, told.gone is not None) == (outcome, gone)


def test_a_status_nobody_knows_is_no_news() -> None:
    assert read_call(call(CLAIMED, form_of("teleported"))).told() is None


@pytest.mark.parametrize("part", ["rawPath", "rawQueryString", "body", "domainName"])
@given(by=st.text("abc012-_", min_size=1, max_size=3))
def test_whatever_is_changed_it_is_believed_no_more(part: str, by: str) -> None:
    event = call(CLAIMED, DELIVERED, in_base64=False)
    place = event["requestContext"] if part == "domainName" else event
    place[part] = by + place[part] if part == "domainName" else place[part] + by
    try:
        assert not read_call(event).signed(CHANNEL, SECRET)
    except CallMalformed:
        assert part == "rawQueryString"  # a key that is none


@pytest.mark.parametrize("signature", [None, "", "ä", signature_of("x", BASE, [])])
def test_without_its_signature_it_is_nobodys(signature: str | None) -> None:
    event = call(CLAIMED, DELIVERED)
    event["headers"]["x-twilio-signature"] = signature
    assert not read_call(event).signed(CHANNEL, SECRET)


def test_any_of_the_accounts_tokens_and_no_other_accounts() -> None:
    read = read_call(call(CLAIMED, DELIVERED))
    key = "SK" + "1" * 32 + ":secret"
    assert read.signed(CHANNEL, f"{key} {ACCOUNT}:old {SECRET}")
    assert not read.signed(CHANNEL, f"{key} {ACCOUNT}:old")
    for none in (key, "AC" + "9" * 32 + f":{TOKEN}", "hush"):
        with pytest.raises(Unverifiable) as said:
            read.signed(CHANNEL, none)
        assert TOKEN not in str(said.value)
        assert "hush" not in str(said.value)


def test_with_or_without_the_fragment_that_twilio_keeps_for_itself() -> None:
    base = f"{BASE}#rc=5&rp=all"
    channel = CallbackChannel(
        name="web", settings={**SETTINGS, "status_callback": base}, secret_reference=None
    )
    event = call(CLAIMED, DELIVERED, base=base)
    assert read_call(event).signed(channel, SECRET)
    whole = f"{BASE}{event['rawPath']}?{event['rawQueryString']}#rc=5&rp=all"
    event["headers"]["x-twilio-signature"] = signature_of(TOKEN, whole, DELIVERED.items())
    assert read_call(event).signed(channel, SECRET)


HOSTILE: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({"body": None}, 400),
    "empty": ({"body": "", "isBase64Encoded": False}, 400),
    "no base64": ({"body": "***"}, 400),
    "no UTF-8": ({"body": "/w=="}, 400),
    "escaped, no UTF-8": ({"body": "MessageStatus=%ff", "isBase64Encoded": False}, 400),
    "too many fields": ({"body": "a=1&" * (FIELDS_MAX + 1), "isBase64Encoded": False}, 400),
    "too large": ({"body": "a" * (BODY_BYTES_MAX + 1), "isBase64Encoded": False}, 413),
    "far too large": ({"body": "a" * 6_000_000}, 413),
    "another type": ({"headers": {"content-type": "application/json"}}, 415),
    "no headers": ({"headers": None}, 415),
    "no method": ({"requestContext": None}, 405),
    "a GET": ({"requestContext": {"http": {"method": "GET"}}}, 405),
    "no attempt": ({"rawQueryString": ""}, 400),
    "no path": ({"rawPath": "/"}, 400),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_call_is_refused_with_its_status(name: str) -> None:
    changes, status = HOSTILE[name]
    with pytest.raises(CallMalformed) as refused:
        read_call({**call(CLAIMED, DELIVERED), **changes})
    assert refused.value.status == status
    assert len(str(refused.value)) < 60


def test_it_shows_nothing_of_what_it_holds() -> None:
    assert "+1415" not in repr(read_call(call(CLAIMED, DELIVERED)))
    assert str(KEY) not in repr(read_call(call(CLAIMED, DELIVERED)))
