"""SMS by Twilio. The recipient is a phone number (E.164). Twilio drops no repeat, but tells what it has: the list of
messages to a number, and callbacks that name the attempt.

Source: twilio.com/docs/messaging/api/message-resource (*Create*: at most 1600 characters; ValidityPeriod 1 to 36,000 s,
the page of error 90007).
"""

import base64
import re
import time
from collections.abc import Callable
from typing import Annotated, cast
from urllib.parse import urlencode

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import NotSent, Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.body import digest_of
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import Request, read_url
from fencepost.senders.transport import Transport
from fencepost.senders.twilio_answer import meaning_of
from fencepost.senders.twilio_callback import callback_url
from fencepost.senders.twilio_list import Wanted, find
from fencepost.senders.vocabulary import laid_over, plain_text, raw_block

TEXT_CHARACTERS_MAX = 1600
VALIDITY_SECONDS_MAX = 36_000
PAGE_SIZE = 20  # a page must fit into what is read of an answer
OURS = frozenset({"To", "StatusCallback", "ValidityPeriod"})
CONTENT = ("Body", "MediaUrl", "ContentSid")
NUMBER = re.compile(r"(?:[a-z]+:)?\+[1-9][0-9]{6,14}", re.ASCII)  # as Twilio writes it back
SECRET = re.compile(r"(?:AC|SK)[0-9a-f]{32}:[!-~]+", re.ASCII | re.IGNORECASE)
Sid = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{2}[0-9a-fA-F]{32}$")]

Form = tuple[tuple[str, str], ...]


class TwilioSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Twilio channel's settings. One of `from` and `messaging_service_sid` says who sends."""

    account_sid: Sid
    from_: str | None = msgspec.field(default=None, name="from")
    messaging_service_sid: Sid | None = None
    status_callback: str | None = None
    endpoint: str = "https://api.twilio.com"
    list_pages: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5
    # So long after the latest doubtful attempt a message that Twilio does not list will not come any more.
    settled_after_seconds: Annotated[float, msgspec.Meta(ge=0)] = 120.0

    def __post_init__(self) -> None:
        if (self.from_ is None) == (self.messaging_service_sid is None):
            raise ValueError("one of from and messaging_service_sid says who sends")
        if self.status_callback is not None:
            read_url(self.status_callback)

    @property
    def sender(self) -> dict[str, str]:
        if self.messaging_service_sid is not None:
            return {"MessagingServiceSid": self.messaging_service_sid}
        return {"From": self.from_ or ""}


class Twilio:
    """The sender. `now` is wall time in unix seconds: Twilio's dates are."""

    facility = Facility(can_be_asked=True)

    def __init__(
        self,
        transport: Transport,
        settings: TwilioSettings,
        secret: str,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._origin, self._path = endpoint(settings.endpoint)
        self._messages = f"/2010-04-01/Accounts/{settings.account_sid}/Messages.json"
        self._authorization = "Basic " + base64.b64encode(secret.encode()).decode("ascii")
        self._now = now

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            form = form_of(claimed, self._settings)
            body = urlencode(form).encode()
        except ValueError as wrong:  # a UnicodeError would quote the payload
            told = "payload has no UTF-8 form" if isinstance(wrong, UnicodeError) else str(wrong)
            return Rejected(told)
        return fault_of(form) or Prepared(digest_of(body), form)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        form = (*cast("Form", prepared.request), *of_the_attempt(claimed, self._settings))
        request = self._request("POST", self._messages, urlencode(form).encode())
        return await self._transport.send(request, timeout_seconds=timeout_seconds)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        """What Twilio has for this number. Not of a number it would write in another way, nor without a text."""
        age, form = claimed.first_attempt_age_seconds, dict(form_of(claimed, self._settings))
        if age is None or "Body" not in form or not NUMBER.fullmatch(claimed.recipient):
            return None
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
            return None  # it may still come
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


def of_the_attempt(claimed: Claimed, settings: TwilioSettings) -> Form:
    """Where Twilio tells what became of it, and how long it may keep it: the time that is left."""
    base, left = settings.status_callback, claimed.expires_in_seconds
    callback = (("StatusCallback", callback_url(base, claimed.held)),) if base else ()
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
    pair = (secret or "").strip()
    if not SECRET.fullmatch(pair):
        raise ValueError(
            "the secret is no pair of a SID (SK… or AC…) and its secret, a colon between"
        )
    return Twilio(transport, settings, pair)


KIND = SenderKind(
    build=twilio,
    settings=TwilioSettings,
    needs_secret=True,
    facility=lambda _: Twilio.facility,
)
