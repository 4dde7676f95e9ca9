"""Credentials that a provider refuses: read anew once, before their channel pauses for them."""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from fencepost.attempt import guarded
from fencepost.core.notification import ChannelId
from fencepost.core.outcome import CredentialFailure, NotSent
from fencepost.core.step import Replied
from fencepost.ports import RenewsCredentials, Sender, Senders

RENEWED = NotSent("the credentials were read anew", blameless=True)


class Credentials:
    """The senders of one run. Where credentials turn out to be others by now, the next sends go out with those."""

    def __init__(self, senders: Senders, mine: Mapping[ChannelId, Sender]) -> None:
        self._renewing = senders if isinstance(senders, RenewsCredentials) else None
        self._mine = dict(mine)
        self._turns: dict[ChannelId, asyncio.Lock] = {}

    def __getitem__(self, channel: ChannelId) -> Sender:
        return self._mine[channel]

    async def judge(self, channel: ChannelId, sender: Sender, replied: Replied) -> Replied:
        """What an attempt through `sender` came to. Refused, with other credentials at hand: not sent, and no pause.

        Stopped meanwhile it is what the provider said.
        """
        if not isinstance(replied.outcome, CredentialFailure) or self._renewing is None:
            return replied
        try:
            renewed = await self._renewed(channel, sender, self._renewing)
        except asyncio.CancelledError:
            return replied
        return replace(replied, outcome=RENEWED) if renewed else replied

    async def _renewed(
        self, channel: ChannelId, refused: Sender, senders: RenewsCredentials
    ) -> bool:
        """Fifty refused at once ask once: whoever comes second finds a sender that is not the one refused."""
        async with self._turns.setdefault(channel, asyncio.Lock()):
            if self._mine[channel] is not refused:
                return True
            renewed = await guarded(senders.renewed(channel), _nobody)
            if renewed is None:
                return False
            self._mine[channel] = renewed
            return True


def _nobody(bug: Exception) -> None:
    """A kind of somebody else's may raise anything over a new secret: the refusal stands."""
