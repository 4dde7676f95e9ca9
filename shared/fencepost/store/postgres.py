"""The store of the worker: PostgreSQL, over one connection, one round trip a call.

Everything works through a transaction-mode pooler: no session state, no `options`, no prepared statement by name.
"""

import asyncio
import contextlib
import os
import select
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from msgspec.structs import replace

from fencepost.core.channel import Skip
from fencepost.core.exchange import Exchange, Exchanged, Failure, RunStart, RunStarted
from fencepost.core.notification import RunId
from fencepost.core.retention import Pruned
from fencepost.ports import Access, StoreFailed
from fencepost.store import words
from fencepost.store.access import Written
from fencepost.store.dialling import Dialler
from fencepost.store.failures import must_dial_anew, translate
from fencepost.store.receipts import PostgresReceipts
from fencepost.store.waves import PostgresWaves

QUERIES = Path(__file__).parent / "queries"
HANG_UP_SECONDS = 1.0  # for the driver to notice that its socket was shut

Rows = list[tuple[Any, ...]]


class PostgresStore:
    """Implements `ports.Store`. One caller at a time; whatever goes wrong is `StoreFailed`.

    The connection is dialled when it is first needed, and again after anything that leaves its state unknown:
    a timeout, a cancellation, a failure of the connection itself.
    """

    def __init__(
        self,
        access: str | Access,
        *,
        connect_timeout_seconds: float = 5.0,
        exchange_timeout_seconds: float = 5.0,
    ) -> None:
        self._timeout_seconds = exchange_timeout_seconds
        self._dialler = Dialler(
            Written(access) if isinstance(access, str) else access,
            self._note,
            connect_timeout_seconds=connect_timeout_seconds,
            answer_timeout_seconds=exchange_timeout_seconds,
        )
        self._noted: list[str] = []  # why a connection was dialled anew, until a run has told it
        self._connection: psycopg.AsyncConnection | None = None
        self._has_work = (QUERIES / "has_work.sql").read_bytes()
        self._paused = (QUERIES / "paused_channels.sql").read_bytes()
        self._start_run = (QUERIES / "start_run.sql").read_bytes()
        self._exchange = (QUERIES / "exchange.sql").read_bytes()
        self._note_skips = (QUERIES / "note_skips.sql").read_bytes()
        self._prune = (QUERIES / "prune.sql").read_bytes()
        self.waves = PostgresWaves(self._ask)
        self.receipts = PostgresReceipts(self._ask)

    async def has_work(self, channels: tuple[str, ...] = ()) -> bool:
        rows = await self._ask_twice(self._has_work, {"channels": words.name_list(channels)})
        return bool(rows[0][0])

    async def paused_channels(self, channels: tuple[str, ...] = ()) -> int:
        """How many channels are paused while something due waits in them. Reads only; said once."""
        rows = await self._ask(self._paused, {"channels": words.name_list(channels)})
        return int(rows[0][0])

    async def note_skips(self, run: RunId, skips: Sequence[Skip]) -> None:
        """Write down what changed of what can be sent on; said once. A busy row is left to the next run."""
        await self._ask(self._note_skips, words.skip_arguments(run, skips))

    async def prune(self, limit: int) -> Pruned:
        """Let so many rows go that are older than they are kept; said once, waits for nobody."""
        row = (await self._ask(self._prune, {"limit": limit}))[0]
        journal, runs, events, commands, more = row
        return Pruned(journal=journal, runs=runs, events=events, commands=commands, more=more)

    async def start_run(self, start: RunStart) -> RunStarted:
        rows = await self._ask_twice(self._start_run, words.start_arguments(start))
        redialled, self._noted = "; ".join(self._noted) or None, []
        return replace(words.run_started(rows), redialled=redialled)

    async def exchange(self, exchange: Exchange) -> Exchanged:
        arguments = words.exchange_arguments(exchange)
        rows = await self._ask(self._exchange, arguments)
        self._noted.clear()  # the run was told by the exchange that failed
        return words.exchanged(exchange, rows)

    async def wake(self) -> None:
        """Between two calls a server says nothing: something to read is its farewell."""
        if self._connection is not None and not _quiet(self._connection):
            self._note("the connection had ended while nobody used it")
            await self._drop()

    async def close(self) -> None:
        await self._drop()

    async def _ask_twice(self, query: bytes, arguments: words.Arguments) -> Rows:
        """Ask what is harmless to ask again, so that a connection that died in its sleep costs nothing."""
        slept = self._connection
        if slept is not None and not slept.closed:
            try:
                return await self._ask_over(slept, query, arguments)
            except StoreFailed as failed:
                if self._connection is slept:  # it still stands: this is the answer
                    raise
                self._note(failed.detail)
        return await self._ask(query, arguments)

    async def _ask(self, query: bytes, arguments: words.Arguments) -> Rows:
        return await self._ask_over(await self._dialled(), query, arguments)

    async def _ask_over(
        self, connection: psycopg.AsyncConnection, query: bytes, arguments: words.Arguments
    ) -> Rows:
        asking = asyncio.ensure_future(_rows(connection, query, arguments))
        try:
            answered, _ = await asyncio.wait({asking}, timeout=self._timeout_seconds)
        except asyncio.CancelledError:
            await self._hang_up(connection, asking)
            raise
        if not answered:
            await self._hang_up(connection, asking)
            raise StoreFailed(Failure.UNKNOWN, f"no answer within {self._timeout_seconds:g} s")
        return await self._answer(connection, asking)

    async def _answer(
        self, connection: psycopg.AsyncConnection, asked: "asyncio.Future[Rows]"
    ) -> Rows:
        failure = asked.exception()
        if failure is None:
            return asked.result()
        if not isinstance(failure, psycopg.Error | OSError | UnicodeEncodeError):
            await self._drop()
            raise failure
        failed = translate(failure, connection)
        if failed.failure is Failure.UNKNOWN or must_dial_anew(failure):
            await self._drop()
        raise failed from failure

    async def _dialled(self) -> psycopg.AsyncConnection:
        if self._connection is not None and self._connection.closed:
            await self._drop()
        if self._connection is None:
            self._connection = await self._dialler.dial()
        return self._connection

    def _note(self, why: str) -> None:
        self._noted.append(why)

    async def _hang_up(
        self, connection: psycopg.AsyncConnection, asking: "asyncio.Future[Rows]"
    ) -> None:
        """Shut the socket under the driver: to cancel politely it would wait for the server that does not answer."""
        self._connection = None
        with (
            contextlib.suppress(OSError, psycopg.OperationalError),
            socket.socket(fileno=os.dup(connection.fileno())) as shut,
        ):
            shut.shutdown(socket.SHUT_RDWR)
        await asyncio.wait({asking}, timeout=HANG_UP_SECONDS)
        if not asking.cancel():
            asking.exception()  # seen, so that asyncio does not report it as forgotten
        await connection.close()

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _rows(
    connection: psycopg.AsyncConnection, query: bytes, arguments: words.Arguments
) -> Rows:
    cursor = await connection.execute(query, arguments)
    return await cursor.fetchall()


def _quiet(connection: psycopg.AsyncConnection) -> bool:
    if connection.closed or connection.broken:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)
