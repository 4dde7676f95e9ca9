"""Finds the sender of a channel: kinds to constructors, our own and those that other packages bring along."""

import asyncio
import importlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import ChannelId, OnUncertain
from fencepost.misfit import in_words
from fencepost.ports import Clock, Sender, SenderUnavailable
from fencepost.senders.endpoint import endpoint
from fencepost.senders.kind import SenderKind
from fencepost.senders.request import InvalidUrl
from fencepost.senders.transport import Transport

ENTRY_POINTS = "fencepost.senders"
RENEWALS_APART_SECONDS = 60.0  # a secret that is wrong is not read at every refusal

# Imported when a channel wants it: a cold start pays for no other provider.
OUR_OWN: Mapping[str, str] = {
    "webhook": "fencepost.senders.webhook",
    "slack": "fencepost.senders.slack",
    "slack_webhook": "fencepost.senders.slack_webhook",
    "twilio": "fencepost.senders.twilio",
    "telegram": "fencepost.senders.telegram",
    "smtp": "fencepost.senders.smtp",
    "sns": "fencepost.senders.sns",
    "ses": "fencepost.senders.ses",
    "aws_sms": "fencepost.senders.aws_sms",
    "fcm": "fencepost.senders.fcm",
    "apns": "fencepost.senders.apns",
    "webpush": "fencepost.senders.webpush",
    "expo": "fencepost.senders.expo",
}


NO_RECONCILE = (
    "on_uncertain = reconcile cannot work: with these settings the provider can neither be asked what became of a send "
    "nor tells it by itself; choose resend (it may arrive twice) or hold (a person decides)"
)


def fault_of(
    kind: str,
    settings: Mapping[str, Any],
    secret_reference: str | None,
    on_uncertain: str | None = None,
) -> str | None:
    """Why these can never be a working channel, in one line; None where nothing can be said against them.

    Raises `SenderUnavailable` where no package here brings the kind: elsewhere one may.
    """
    found = kind_of(kind)
    if found.needs_secret and secret_reference is None:
        return "a secret reference is missing: no channel of this kind works without one"
    try:
        read = msgspec.convert(dict(settings), found.settings) if found.settings else settings
        facility = found.facility(read) if found.facility is not None else Facility()
    except ValueError as wrong:  # msgspec's included
        return f"settings: {in_words(_line(wrong), found.settings)}"
    if (fault := _endpoint_fault(read)) is not None:
        return f"settings: endpoint: {fault}"
    if secret_reference is not None and found.no_secret and (fault := found.no_secret(read)):
        return f"settings: {fault}"
    if on_uncertain == OnUncertain.RECONCILE and not facility.reconciles:
        return NO_RECONCILE
    return None


def _endpoint_fault(settings: object) -> str | None:
    """Every kind that has an `endpoint` reads it so."""
    written = getattr(settings, "endpoint", None)
    try:
        if isinstance(written, str):
            endpoint(written)
    except InvalidUrl as wrong:
        return _line(wrong)
    return None


ResolveSecret = Callable[[str], str]  # from a reference to the secret. Raises LookupError


@dataclass(frozen=True, slots=True)
class Built:
    """A sender, and what it was built from."""

    channel: Channel
    secret: str | None = field(repr=False)
    sender: Sender


class SenderRegistry:
    """Implements `ports.Senders` and `ports.RenewsCredentials`.

    `renew_secret` believes nothing that `resolve_secret` may have kept.
    """

    def __init__(
        self,
        resolve_secret: ResolveSecret,
        transport: Transport,
        *,
        renew_secret: ResolveSecret | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._resolve_secret = resolve_secret
        self._renew_secret = renew_secret or resolve_secret
        self._transport = transport
        self._clock = clock
        self._built: dict[ChannelId, Built] = {}
        self._renewed_at: dict[ChannelId, float] = {}

    def sender(self, channel: Channel) -> Sender:
        """Built once a channel revision and secret: an operator's change makes a new one, and so does a rotation.

        While a secret cannot be read, one that was built of it still works. Raises `SenderUnavailable`; the next run
        tries again.
        """
        known = self._built.get(channel.id)
        if known is not None and known.channel.revision != channel.revision:
            known = None
        try:
            secret = _found(self._resolve_secret, channel.secret_reference)
        except SenderUnavailable:
            if known is None:
                raise
            return known.sender
        if known is not None and known.secret == secret:
            return known.sender
        return self._build(channel, secret)

    async def renewed(self, channel: ChannelId) -> Sender | None:
        """Its secret read anew, once a minute at most; in a thread, for it may take seconds."""
        known, now = self._built.get(channel), self._clock()
        asked_at = self._renewed_at.get(channel, -math.inf)
        if known is None or known.channel.secret_reference is None:
            return None
        if now - asked_at < RENEWALS_APART_SECONDS:
            return None
        self._renewed_at[channel] = now
        try:
            reference = known.channel.secret_reference
            secret = await asyncio.to_thread(_found, self._renew_secret, reference)
            return None if secret == known.secret else self._build(known.channel, secret)
        except SenderUnavailable:
            return None

    async def wake(self) -> None:
        await self._transport.wake()

    async def close(self) -> None:
        await self._transport.close()

    def _build(self, channel: Channel, secret: str | None) -> Sender:
        kind = kind_of(channel.sender)
        try:
            sender = kind.build(channel, secret, self._transport)
        except (ValueError, msgspec.ValidationError) as wrong:
            why = in_words(_line(wrong), kind.settings)
            raise SenderUnavailable(f"{channel.sender}: {why}") from None
        self._built[channel.id] = Built(channel, secret, sender)
        return sender


def _found(resolve: ResolveSecret, reference: str | None) -> str | None:
    if reference is None:
        return None
    try:
        return resolve(reference)
    except LookupError as missing:
        raise SenderUnavailable(_line(missing)) from None


def kind_of(name: str) -> SenderKind:
    """Our own first: no other package replaces one. Raises `SenderUnavailable`."""
    if name in OUR_OWN:
        ours: SenderKind = importlib.import_module(OUR_OWN[name]).KIND
        return ours
    from importlib import metadata  # costly at a cold start, and few have senders of their own

    for offered in metadata.entry_points(group=ENTRY_POINTS, name=name):
        try:
            theirs = offered.load()
        except (ImportError, AttributeError) as broken:
            raise SenderUnavailable(
                f"sender kind {name!r} cannot be loaded: {_line(broken)}"
            ) from None
        if not isinstance(theirs, SenderKind):
            raise SenderUnavailable(f"sender kind {name!r} is no SenderKind")
        return theirs
    raise SenderUnavailable(f"unknown sender kind {name!r}")


def _line(wrong: Exception) -> str:
    """Its message as one line; a KeyError's would come quoted."""
    text = str(wrong.args[0]) if wrong.args else type(wrong).__name__
    return " ".join(text.split())
