"""What a module that brings a sender kind says of it: its `KIND`."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from fencepost.core.channel import Channel, Facility
from fencepost.ports import Sender
from fencepost.senders.transport import Transport

# Builds a sender from a channel, its secret and the shared transport. Raises ValueError (msgspec's included) for
# settings or a secret it cannot work with; the message must not repeat a secret.
Constructor = Callable[[Channel, str | None, Transport], Sender]


class SenderKind(Struct, frozen=True, kw_only=True):
    """`settings` is what a channel's settings must fit, checked where they are written down. None: nothing is known.
    `needs_secret`: no channel of this kind works without a secret reference. `facility`: what a channel with these
    settings offers against a duplicate (given the settings as `settings` reads them); None: nothing, so that no such
    channel may reconcile. `no_secret`: why a channel with these settings may have no secret; None where it may."""

    build: Constructor
    settings: type[msgspec.Struct] | None = None
    needs_secret: bool = False
    facility: Callable[[Any], Facility] | None = None
    no_secret: Callable[[Any], str | None] | None = None
