"""What every kind of ours promises, whatever a payload says and a provider answers (G7, G9, G10)."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.attempt import attempt
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Delivered, Outcome, Uncertain
from fencepost.core.payload import payload_fault
from fencepost.core.reply import Phase, Reply
from fencepost.ports import Prepared, Sender
from fencepost.senders.registry import OUR_OWN
from tests.senders.claimed import claimed
from tests.senders.every_kind import EXAMPLES, PAYLOADS, Answering, digests, sender_of

MARK = "ñ hush ñ"  # in every text of a payload and recipient; no code of a provider looks so
DONE = Reply(phase=Phase.ANSWERED, status=200, body=b"{}")

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
texts = st.one_of(words, st.sampled_from(["", "\r\n.\r\n", "\u2028", "😀" * 3000])).map(
    lambda text: MARK + text
)
numbers = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
FIELDS = (
    "text", "blocks", "channel", "metadata", "event_payload", "parse_mode", "chat_id", "entities", "Body", "MediaUrl",
    "ContentSid", "To", "headers", "subject", "message", "token", "android", "notification", "apns", "payload", "aps",
    "webpush", "data", "alert", "expiration", "to", "ttl", "tag", "attributes", "GCM", "APNS", "default", "tags",
    "List-Unsubscribe", "priority", "collapseId", "fcm_options", "Subject", "attachments", "unfurl_links",
)  # fmt: skip
names = st.one_of(st.sampled_from(FIELDS), words)
anything = st.recursive(
    st.one_of(texts, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(names, anything, max_size=4)
TEXT_KEYS = ("title", "body", "html", "url", "image", "icon", "sound", "thread", "category", "type")


def payloads(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    known: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(TEXT_KEYS, texts),
        "collapse": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=16),
        "urgency": st.sampled_from(["low", "normal", "high"]),
        "badge": st.one_of(st.integers(0, 99_999), st.integers(0, 9).map(float)),
        "silent": st.booleans(),
        "data": objects,
        "raw": st.fixed_dictionaries({kind: objects}),
    }
    return st.fixed_dictionaries({}, optional=known)


def recipients(kind: str) -> st.SearchStrategy[str]:
    good = EXAMPLES[kind].recipients
    odd = st.tuples(st.sampled_from(good), words).map(lambda pair: pair[0] + MARK + pair[1])
    return st.one_of(st.sampled_from(good), odd, texts)


def rows(kind: str) -> st.SearchStrategy[Claimed]:
    return st.builds(
        lambda recipient, payload, left: claimed(
            recipient=recipient, payload=payload, expires_in_seconds=left
        ),
        recipients(kind),
        payloads(kind),
        st.one_of(st.none(), st.floats(0.001, 1e12)),
    )


@cache  # keys and trust stores are read once
def built(kind: str) -> Sender:
    return sender_of(kind, Answering(DONE))


def tells_nothing(outcome: Outcome, kind: str, recipient: str) -> None:
    if isinstance(outcome, Delivered):
        return
    hidden = (MARK, recipient, *EXAMPLES[kind].secrets)
    assert not [each for each in hidden if len(each) > 3 and each in outcome.reason], outcome


@pytest.mark.parametrize("kind", OUR_OWN)
@settings(deadline=None, max_examples=50)  # a busy machine is no failure
@given(data=st.data())
def test_whatever_a_payload_says_a_sender_makes_a_message_or_says_why_not(
    kind: str, data: st.DataObject
) -> None:
    row = data.draw(rows(kind))
    assert payload_fault(row.payload) is None, "the database would take it"
    sender = built(kind)
    made = sender.prepare(row)
    again = sender.prepare(
        replace(row, payload=upside_down(row.payload), expires_in_seconds=None, attempts=5)
    )
    if isinstance(made, Prepared):
        assert isinstance(again, Prepared)
        assert (len(made.digest), made.digest) == (16, again.digest)
        return
    assert not isinstance(made, Delivered)
    tells_nothing(made, kind, row.recipient)


@pytest.mark.parametrize("kind", [kind for kind in OUR_OWN if kind != "smtp"])  # it dials itself
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_what_was_made_can_be_sent(kind: str, data: st.DataObject) -> None:
    sender, row = built(kind), data.draw(rows(kind))
    replied = asyncio.run(attempt(sender, row, timeout_seconds=5, clock=lambda: 0.0))
    why = "" if isinstance(replied.outcome, Delivered) else replied.outcome.reason
    assert "bug in the sender" not in why, why


def upside_down(value: Any) -> Any:
    """The same JSON, its keys in another order."""
    if isinstance(value, Mapping):
        return {key: upside_down(value[key]) for key in reversed(list(value))}
    return [upside_down(each) for each in value] if isinstance(value, list) else value


# --- what comes back

KEYS = (
    "ok", "error", "errors", "data", "status", "id", "details", "code", "message", "description", "parameters",
    "retry_after", "migrate_to_chat_id", "result", "message_id", "ts", "sid", "reason", "timestamp", "errno", "name",
    "MessageId", "__type", "Message", "@type", "errorCode", "fieldViolations", "field", "violations", "warning",
    "response_metadata", "messages",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    True, False, None, "true", "ok", "error", 0, 1, -1, 20003, 21610, 429, 1e308, "\ud800", "\0", MARK,
    "DeviceNotRegistered", "UNREGISTERED", "INVALID_ARGUMENT", "BadDeviceToken", "Unregistered", "ratelimited",
    "channel_not_found", [], {},
    "type.googleapis.com/google.firebase.fcm.v1.FcmError", "type.googleapis.com/google.rpc.BadRequest",
    "TooManyRequestsException", 10**400, "9" * 5000,
)  # fmt: skip
answers = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
PAGES = (
    b"", b"{", b"[" * 60_000, b"null", b"NaN", b'"ok"', b"ok", b"\xff\xfe{", b"<html><h1>502</h1>", b"{" * 65_536,
    b"<ErrorResponse><Error><Code>EndpointDisabled</Code></Error>", b"<ErrorResponse/>", b'<?xml version="1.0"?>',
    b'<!DOCTYPE a [<!ENTITY b "hush">]><a>&b;</a>', b"2.0.0 queued as", b"5.1.1", b'{"ok":true', b'{"ok": "true"}',
    b'{"a":' * 20_000, b'{"ok":true,"ts":"1"}', b'{"ok":true,"result":{"message_id":1}}',
    b'{"data":{"status":"ok","id":"1"}}',
    b'{"data":[{"status":"ok"}]}', b'{"sid":"SM1"}', b'{"name":"projects/a/messages/1"}', b'{"MessageId":"1"}',
)  # fmt: skip
SAID: tuple[Any, ...] = (  # where each provider's code stands, a text that is none
    {"error": MARK}, {"ok": False, "error": MARK}, {"reason": MARK}, {"code": MARK, "message": MARK}, {"errno": MARK},
    {"errors": [{"code": MARK}]}, {"data": {"status": "error", "message": MARK, "details": {"error": MARK}}},
    {"error": {"status": MARK, "message": MARK,
               "details": [{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": MARK}]}},
    {"__type": MARK, "message": MARK}, {"ok": False, "description": f"Bad Request: chat not found {MARK}"},
)  # fmt: skip
bodies = st.one_of(
    st.sampled_from(SAID).map(lambda said: json.dumps(said).encode()),
    answers.map(lambda said: json.dumps(said).encode()),
    st.sampled_from(PAGES),
    st.binary(max_size=40),
    st.tuples(answers, st.integers(0, 60)).map(lambda cut: json.dumps(cut[0]).encode()[: cut[1]]),
)
ODD = (
    "", "-1", "0", "1e9", "9" * 40, "nan", "Wed, 21 Oct 2037 07:28:00 GMT", "Wed, 99 Foo 0000 99:99:99 GMT", MARK,
    "Mon, 01 Jan 0001 00:00:00 +9959", "٣", "bounce.example", "2.0, 3", "type:x",
)  # fmt: skip
NAMES = (
    "retry-after", "date", "x-amzn-errortype", "apns-id", "location", "content-type", "x-amzn-requestid",
)  # fmt: skip
STAGES = ("connect", "ehlo", "auth", "mail", "rcpt", "data", "end")  # the SMTP sender's own word
headers = st.builds(
    lambda theirs, stage: {**theirs, "stage": stage},
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ODD), max_size=4),
    st.sampled_from(STAGES),
)
statuses = st.one_of(
    st.sampled_from([0, 100, 101, 200, 201, 202, 204, 206, 250, 301, 302, 304, 354, 400, 401, 403, 404, 408, 409]),
    st.sampled_from([410, 413, 418, 421, 425, 429, 450, 500, 501, 502, 503, 504, 507, 535, 550, 552, 599, 600, 999]),
)  # fmt: skip


@pytest.mark.parametrize("kind", OUR_OWN)
@settings(deadline=None, max_examples=150)
@given(status=statuses, headers=headers, body=bodies)
def test_whatever_a_provider_answers_it_has_a_meaning_and_no_failure_means_delivered(
    kind: str, status: int, headers: dict[str, str], body: bytes
) -> None:
    sender = built(kind)
    row = claimed(recipient=EXAMPLES[kind].recipients[0])
    reply = Reply(phase=Phase.ANSWERED, status=status, headers=headers, body=body)
    outcome = sender.classify(row, reply)
    assert outcome == sender.classify(row, reply), "pure"
    assert not (isinstance(outcome, Delivered) and not 200 <= status < 300), outcome
    tells_nothing(outcome, kind, row.recipient)
    wait = getattr(outcome, "retry_after_seconds", None)
    assert wait is None or 0 <= wait <= 31 * 86_400


@pytest.mark.parametrize(
    "body", [b'{"ok":false,"error_code":400,"description":"x"}', b'{"ok":false}']
)
@pytest.mark.parametrize("kind", ["telegram", "slack"])
def test_a_200_that_says_it_is_not_ok_is_not_delivered(kind: str, body: bytes) -> None:
    sender = built(kind)
    reply = Reply(phase=Phase.ANSWERED, status=200, body=body)
    assert not isinstance(sender.classify(claimed(), reply), Delivered)


@pytest.mark.parametrize("status", [302, 400, 403, 500])
@pytest.mark.parametrize("kind", ["telegram", "slack"])
def test_ok_under_a_status_that_is_not_is_doubt(kind: str, status: int) -> None:
    reply = Reply(phase=Phase.ANSWERED, status=status, body=b'{"ok":true,"ts":"1"}')
    assert isinstance(built(kind).classify(claimed(), reply), Uncertain)


# --- the same bytes tomorrow, elsewhere


def test_digests_are_the_same_in_another_process_on_another_day() -> None:
    """Else a repeat would be refused as other bytes (G7)."""
    here = digests()
    assert len(here) >= len(OUR_OWN) * len(PAYLOADS)
    for seed in ("0", "4711"):
        there = subprocess.run(
            [sys.executable, "-m", "tests.senders.every_kind"],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Pacific/Auckland"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(there.stdout) == here


def test_every_kind_of_ours_has_an_example() -> None:
    assert EXAMPLES.keys() == OUR_OWN.keys()
