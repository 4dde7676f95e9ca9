"""Which receipts are due, and what they told, over the connection of a run's store."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from fencepost.core.channel import Channel
from fencepost.core.notification import ChannelId, Fence, NotificationId
from fencepost.core.receipt import ReceiptDue, ReceiptTold
from fencepost.store import words

QUERIES = Path(__file__).parent / "queries"
Ask = Callable[[bytes, words.Arguments], Awaitable[list[tuple[Any, ...]]]]


class PostgresReceipts:
    """Implements `receipts.Book`. Each question is said once: what is lost with its answer is asked again later."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._take = (QUERIES / "take_receipts.sql").read_bytes()
        self._channels = (QUERIES / "receipt_channels.sql").read_bytes()
        self._tell = (QUERIES / "tell_receipts.sql").read_bytes()

    async def take(self, channels: tuple[str, ...], limit: int) -> tuple[ReceiptDue, ...]:
        said = {"channels": words.name_list(channels), "limit": limit}
        return tuple(
            ReceiptDue(
                id=NotificationId(id),
                fence=Fence(fence),
                channel=ChannelId(channel),
                reference=reference or "",
            )
            for id, fence, channel, reference in await self._ask(self._take, said)
        )

    async def channels(self, ids: Sequence[ChannelId]) -> tuple[Channel, ...]:
        return words.channels(await self._ask(self._channels, {"ids": list(ids)}))

    async def tell(self, told: Sequence[ReceiptTold]) -> int:
        return int((await self._ask(self._tell, words.receipt_arguments(told)))[0][0])
