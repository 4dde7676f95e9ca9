"""The model behind the port: what a test of the engine, and the contract suite, talk to."""

from collections.abc import Iterable

from fencepost.core.channel import Channel
from fencepost.core.exchange import Exchange, Exchanged, Failure, RunStart, RunStarted
from fencepost.core.notification import ChannelId, OnUncertain
from fencepost.ports import StoreFailed
from tests.simulation.model import ChannelRow, Database

MINIMUM_CODE_VERSION = 1


class FakeStore:
    """Implements `ports.Store` over a model that others may hold too."""

    def __init__(self, database: Database, *, installation: str = "test") -> None:
        self.database = database
        self.installation = installation

    async def has_work(self, channels: tuple[str, ...] = ()) -> bool:
        if why := self._unknown(channels):
            raise StoreFailed(Failure.REFUSED, why)
        return self.database.has_work(self._ids(channels))

    async def start_run(self, start: RunStart) -> RunStarted:
        if why := self._refusal(start):
            raise StoreFailed(Failure.REFUSED, why)
        wanted = set(self._ids(start.channels))
        channels: tuple[Channel, ...] = self.database.start_run(start.run)
        return RunStarted(channels=tuple(one for one in channels if one.id in wanted))

    async def exchange(self, exchange: Exchange) -> Exchanged:
        return self.database.exchange(exchange)

    async def wake(self) -> None:
        """Nothing freezes here."""

    async def close(self) -> None:
        """Nothing is open."""

    def _ids(self, names: tuple[str, ...]) -> Iterable[ChannelId]:
        return [row.id for row in self.database.channels.values() if not names or row.name in names]

    def _refusal(self, start: RunStart) -> str | None:
        if start.installation != self.installation:
            return f"FENCEPOST_INSTALLATION is {start.installation}"
        if start.version < MINIMUM_CODE_VERSION:
            return f"minimum_code_version is {MINIMUM_CODE_VERSION}"
        return self._unknown(start.channels)

    def _unknown(self, names: tuple[str, ...]) -> str | None:
        unknown = set(names) - {row.name for row in self.database.channels.values()}
        return f"FENCEPOST_CHANNELS names {sorted(unknown)}" if unknown else None


def standard_channels(database: Database) -> None:
    """The channels every bench begins with: `web`, `post` and `slow`."""
    hold, resend = OnUncertain.HOLD, OnUncertain.RESEND
    for row in (
        ChannelRow(id=ChannelId(1), name="web", on_uncertain=hold),
        ChannelRow(id=ChannelId(2), name="post", on_uncertain=hold),
        ChannelRow(id=ChannelId(3), name="slow", on_uncertain=resend, rate=2.0, burst=4.0),
    ):
        database.channels[row.id] = row
