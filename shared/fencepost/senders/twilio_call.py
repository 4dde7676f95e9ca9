"""One call of Twilio's, as a function URL of Lambda brings it. Pure.

Sources: Lambda developer guide, *Invoking function URLs*: payload format 2.0, header names in lower case, the body in
base64 where `isBase64Encoded` says so. Twilio, *Webhooks security*: the signature is over the URL as Twilio called it,
and the decoded fields of the form. Whether it covers a fragment (*Connection overrides*) is not said: both are tried.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from fencepost.core.callback import (
    Callback,
    CallbackChannel,
    CallMalformed,
    Unverifiable,
    callback_of,
)
from fencepost.senders.twilio_callback import Named, meaning_of_callback, named_in
from fencepost.senders.twilio_secret import auth_tokens
from fencepost.senders.twilio_settings import TwilioSettings
from fencepost.senders.twilio_signature import is_signed

BODY_BYTES_MAX = 16_384  # Twilio's own has some hundred
FIELDS_MAX = 100
SIGNATURE = "x-twilio-signature"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwilioCall:
    """Nobody's word until `signed`."""

    url: str = field(repr=False)
    named: Named
    fields: tuple[tuple[str, str], ...] = field(repr=False)
    signature: str | None = field(repr=False)

    @property
    def channel(self) -> str:
        return self.named.channel

    def signed(self, channel: CallbackChannel, secret: str) -> bool:
        """Whether Twilio signed it for this channel's account. Raises `Unverifiable`."""
        try:
            settings = msgspec.convert(dict(channel.settings), TwilioSettings)
            tokens = auth_tokens(secret, settings.account_sid)
        except ValueError:
            raise Unverifiable("the channel's settings or secret are not Twilio's") from None
        if not tokens:
            raise Unverifiable("the channel's secret has no auth token of its account (AC…:token)")
        return any(
            is_signed(token, url, self.fields, self.signature)
            for token in tokens
            for url in self._urls(settings)
        )

    def told(self) -> Callback | None:
        """What became of the attempt; None: nothing that is known."""
        outcome = meaning_of_callback(dict(self.fields))
        named = self.named
        return callback_of(named.held, named.key, outcome) if outcome is not None else None

    def _urls(self, settings: TwilioSettings) -> Iterator[str]:
        yield self.url
        if fragment := urlsplit(settings.status_callback or "").fragment:
            yield f"{self.url}#{fragment}"


def read_call(event: Mapping[str, Any]) -> TwilioCall:
    """Raises `CallMalformed`."""
    context, headers = _part(event, "requestContext"), _part(event, "headers")
    if _part(context, "http").get("method") != "POST":
        raise CallMalformed("it is no POST", 405)
    if not str(headers.get("content-type", "")).lower().startswith(FORM):
        raise CallMalformed("its body is no form", 415)
    url = _url(context, event)
    named = named_in(url)
    if named is None:
        raise CallMalformed("its URL names no attempt")
    return TwilioCall(
        url=url, named=named, fields=_fields(_body(event)), signature=headers.get(SIGNATURE)
    )


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}


def _url(context: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """As Twilio called it. Lambda terminates TLS, and knows its own name."""
    place = f"https://{context.get('domainName', '')}{event.get('rawPath', '')}"
    query = event.get("rawQueryString")
    return f"{place}?{query}" if query else place


def _body(event: Mapping[str, Any]) -> str:
    body = event.get("body") or ""
    if not isinstance(body, str) or len(body) > BODY_BYTES_MAX * 2:
        raise CallMalformed("its body is too large", 413)
    if not event.get("isBase64Encoded"):
        return body
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, ValueError):  # a UnicodeError too
        raise CallMalformed("its body is no base64 of UTF-8") from None


def _fields(body: str) -> tuple[tuple[str, str], ...]:
    if len(body) > BODY_BYTES_MAX:
        raise CallMalformed("its body is too large", 413)
    try:
        fields = parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise CallMalformed("its body cannot be read as a form") from None
    if not fields:
        raise CallMalformed("its body is empty")
    return tuple(fields)
