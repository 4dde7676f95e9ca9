"""What a run asks the database for more runs with, over the connection of its store."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from fencepost.core.drain import Backlog
from fencepost.core.notification import RunId
from fencepost.store import words

QUERIES = Path(__file__).parent / "queries"
Ask = Callable[[bytes, words.Arguments], Awaitable[list[tuple[Any, ...]]]]


class PostgresWaves:
    """Implements `scale_out.Waves`. Each question is said once: nothing is lost where it has no answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._backlog = (QUERIES / "backlog.sql").read_bytes()
        self._begin_wave = (QUERIES / "begin_wave.sql").read_bytes()
        self._end_wave = (QUERIES / "end_wave.sql").read_bytes()

    async def backlog(self, channels: tuple[str, ...], limit: int, seconds: float) -> Backlog:
        """What a claim would find now, counted up to `limit`. Reads only."""
        said = {"channels": words.name_list(channels), "limit": limit, "seconds": seconds}
        due, more, oldest = (await self._ask(self._backlog, said))[0]
        return Backlog(due=due, more=more, oldest_due_seconds=oldest)

    async def begin_wave(
        self, run: RunId, ids: Sequence[UUID], seconds: float, part: UUID | None
    ) -> bool:
        """A lost answer leaves a wave that nobody sends, until it runs out."""
        said = {"run": run, "ids": list(ids), "seconds": seconds, "part": part}
        return bool((await self._ask(self._begin_wave, said))[0][0])

    async def end_wave(self, run: RunId, unsent: Sequence[UUID]) -> bool:
        said = {"run": run, "unsent": list(unsent)}
        return bool((await self._ask(self._end_wave, said))[0][0])
