"""Finds the sender of a channel: kinds to constructors, our own and those that other packages bring along."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fencepost.core.channel import Channel
from fencepost.core.notification import ChannelId, OnUncertain
from fencepost.ports import Sender, SenderUnavailable
from fencepost.senders.kind import SenderKind
from fencepost.senders.transport import Transport

ENTRY_POINTS = "fencepost.senders"

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
    if found.settings is None:
        return None
    try:
        read = msgspec.convert(dict(settings), found.settings)
        facility = found.facility(read) if found.facility is not None else None
    except ValueError as wrong:  # msgspec's included
        return _line(wrong)
    if on_uncertain != OnUncertain.RECONCILE or facility is None or facility.reconciles:
        return None
    return NO_RECONCILE


class SenderRegistry:
    """Implements `ports.Senders`. `resolve_secret` leads from a reference to the secret and raises LookupError."""

    def __init__(self, resolve_secret: Callable[[str], str], transport: Transport) -> None:
        self._resolve_secret = resolve_secret
        self._transport = transport
        self._built: dict[ChannelId, tuple[int, Sender]] = {}

    def sender(self, channel: Channel) -> Sender:
        """Built once a channel revision: an operator's change makes a new one, a rotated secret wants a new process.

        Raises `SenderUnavailable`; the next run tries again.
        """
        known = self._built.get(channel.id)
        if known is not None and known[0] == channel.revision:
            return known[1]
        sender = self._build(channel)
        self._built[channel.id] = (channel.revision, sender)
        return sender

    async def wake(self) -> None:
        await self._transport.wake()

    async def close(self) -> None:
        await self._transport.close()

    def _build(self, channel: Channel) -> Sender:
        kind = kind_of(channel.sender)
        secret = self._secret(channel.secret_reference)
        try:
            return kind.build(channel, secret, self._transport)
        except (ValueError, msgspec.ValidationError) as wrong:
            raise SenderUnavailable(f"{channel.sender}: {_line(wrong)}") from None

    def _secret(self, reference: str | None) -> str | None:
        if reference is None:
            return None
        try:
            return self._resolve_secret(reference)
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
