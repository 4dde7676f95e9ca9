"""The other rhythm: claim as many as may be in flight, send them all, wait for all, settle all, and again."""

import asyncio
import time

from bench.drain import FencepostDrain
from fencepost.attempt import attempt
from fencepost.core.exchange import Word
from fencepost.core.notification import AttemptOutcome, Claimed, Kind
from fencepost.core.outcome import Delivered
from fencepost.ports import Sender
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import read_secret

SEND_TIMEOUT_SECONDS = 10.0


async def waves(url: str, slots: int) -> None:
    """Until nothing is due. Whatever is not delivered is left to its lease: the bench counts."""
    run = FencepostDrain(url, slots)
    registry = SenderRegistry(read_secret, Transport())
    channels = await run.begin()
    sender = registry.sender(channels[0])
    while claimed := await run.say(claim=True):
        words = await asyncio.gather(*(sent(sender, row) for row in claimed))
        run.words = tuple(word for word in words if word is not None)
    await registry.close()
    await run.store.close()


async def sent(sender: Sender, claimed: Claimed) -> Word | None:
    replied = await attempt(
        sender, claimed, timeout_seconds=SEND_TIMEOUT_SECONDS, clock=time.monotonic
    )
    if not isinstance(replied.outcome, Delivered):
        return None
    return Word(
        id=claimed.id,
        fence=claimed.fence,
        outcome=AttemptOutcome.DELIVERED,
        kind=Kind.DELIVERED,
        facts=replied.facts,
    )
