"""SMS by Twilio. The recipient is a phone number (E.164). Twilio drops no repeat, but tells what it has: the list of
messages to a number, and callbacks that name the attempt.

Source: twilio.com/docs/messaging/api/message-resource (*Create*: at most 1600 characters; ValidityPeriod 1 to 36,000 s,
the page of error 90007).
"""

import base64
import re
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlencode

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import NotSent, Outcome, Rejected, Uncertain
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.phone import E164
from fencepost.senders.request import Request
from fencepost.senders.transport import Transport
from fencepost.senders.twilio_answer import meaning_of
from fencepost.senders.twilio_callback import callback_url
from fencepost.senders.twilio_list import Wanted, find
from fencepost.senders.twilio_secret import auth_tokens, pairs_in
from fencepost.senders.twilio_settings import TwilioSettings
from fencepost.senders.vocabulary import laid_over, plain_text, raw_block

TEXT_CHARACTERS_MAX = 1600
VALIDITY_SECONDS_MAX = 36_000
PAGE_SIZE = 20  # a page must fit into what is read of an answer
OURS = frozenset({"To", "StatusCallback", "ValidityPeriod"})
CONTENT = ("Body", "MediaUrl", "ContentSid")
UNSIGNED = (
    "status_callback needs the auth token of account_sid in the secret too (SK…:secret AC…:token),"
    " for Twilio signs with it and nobody would believe a callback"
)
ELSEWHERE = re.compile(
    r"[a-z]+:[!-~]+", re.ASCII
)  # `whatsapp:` and the like: an address of another network
NUMBER = re.compile(r"(?:[a-z]+:)?\+[1-9][0-9]{6,14}", re.ASCII)  # as Twilio writes it back

Form = tuple[tuple[str, str], ...]


class Twilio:
    """The sender. `pair`: a SID and its secret. `now` is wall time in unix seconds: Twilio's dates are."""

    facility = Facility(can_be_asked=True)

    def __init__(
        self,
        transport: Transport,
        settings: TwilioSettings,
        pair: str,
        *,
        channel: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._origin, self._path = endpoint(settings.endpoint)
        self._messages = f"/2010-04-01/Accounts/{settings.account_sid}/Messages.json"
        self._authorization = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
        self._channel = channel
        self._now = now

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        if not (E164.fullmatch(claimed.recipient) or ELSEWHERE.fullmatch(claimed.recipient)):
            return Rejected("the recipient is no phone number as E.164 writes it")
        try:
            form = form_of(claimed, self._settings)
            body = urlencode(form).encode()
        except ValueError as wrong:  # a UnicodeError would quote the payload
            told = "payload has no UTF-8 form" if isinstance(wrong, UnicodeError) else str(wrong)
            return Rejected(told)
        return fault_of(form) or Prepared(digest_of(body), form)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        form = (
            *cast("Form", prepared.request),
            *of_the_attempt(claimed, self._settings, self._channel),
        )
        request = self._request("POST", self._messages, urlencode(form).encode())
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        """What Twilio has for this number. Not of a number it would write in another way, nor without a text."""
        age, form = claimed.first_attempt_age_seconds, dict(form_of(claimed, self._settings))
        if age is None or "Body" not in form or not NUMBER.fullmatch(claimed.recipient):
            return Uncertain("only a text to a number in E.164 can be asked about")
        query = urlencode({"To": claimed.recipient, "PageSize": PAGE_SIZE})
        latest = age if claimed.doubt_age_seconds is None else claimed.doubt_age_seconds
        found = await find(
            self._get,
            f"{self._messages}?{query}",
            Wanted(text=form["Body"], since=self._now() - age),
            pages=self._settings.list_pages,
            timeout_seconds=timeout_seconds,
        )
        if isinstance(found, NotSent) and latest < self._settings.settled_after_seconds:
            return Uncertain("Twilio does not have it yet, and it may still come")
        return found

    async def _get(self, target: str, timeout_seconds: float) -> Reply:
        request = self._request("GET", target)
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def _request(self, method: str, target: str, body: bytes = b"") -> Request:
        content = (("content-type", "application/x-www-form-urlencoded"),) if body else ()
        headers = (
            *content,
            ("authorization", self._authorization),
            ("accept", "application/json"),
            ("accept-encoding", "identity"),
            ("user-agent", "fencepost"),
        )
        return Request(
            origin=self._origin,
            target=f"{self._path}{target}",
            headers=headers,
            body=body,
            method=method,
        )


def form_of(claimed: Claimed, settings: TwilioSettings) -> Form:
    """What the recipient gets, sorted by name. The `raw` block is laid over it. Raises ValueError."""
    raw = raw_block(claimed.payload, "twilio")
    if taken := OURS & raw.keys():
        raise ValueError(f"raw.twilio may not say {min(taken)}")
    text = plain_text(claimed.payload)
    ours = {**settings.sender, **({"Body": text} if text else {})}
    said = {**laid_over(ours, raw), "To": claimed.recipient}
    return tuple((name, value) for name in sorted(said) for value in _values(said[name]))


def of_the_attempt(claimed: Claimed, settings: TwilioSettings, channel: str) -> Form:
    """Where Twilio tells what became of it, and how long it may keep it: the time that is left."""
    base, left = settings.status_callback, claimed.expires_in_seconds
    callback = (("StatusCallback", callback_url(base, channel, claimed)),) if base else ()
    if left is None:
        return callback
    seconds = max(1, min(int(left), VALIDITY_SECONDS_MAX))
    return (*callback, ("ValidityPeriod", str(seconds)))


def fault_of(form: Form) -> Rejected | None:
    said = dict(form)
    if not any(said.get(name) for name in CONTENT):
        return Rejected("nothing to say: no title, body, url or raw block with Body")
    if (size := len(said.get("Body", ""))) > TEXT_CHARACTERS_MAX:
        return Rejected(f"text has {size} characters, Twilio takes {TEXT_CHARACTERS_MAX}")
    return None


def _values(value: object) -> tuple[str, ...]:
    match value:
        case bool():
            return (str(value).lower(),)
        case str() | int() | float():
            return (str(value),)
        case list() | tuple() if all(isinstance(each, str) for each in value):
            return tuple(value)
    raise ValueError("raw.twilio holds what a form cannot")


def twilio(channel: Channel, secret: str | None, transport: Transport) -> Twilio:
    """The constructor of the kind `twilio`. Raises ValueError or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), TwilioSettings)
    pair, *_ = pairs_in(secret or "")
    if settings.status_callback and not auth_tokens(secret or "", settings.account_sid):
        raise ValueError(UNSIGNED)
    return Twilio(transport, settings, pair, channel=channel.name)


KIND = SenderKind(
    build=twilio,
    settings=TwilioSettings,
    needs_secret=True,
    facility=lambda _: Twilio.facility,
)
