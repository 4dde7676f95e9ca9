"""How a connection is opened: the same way for every caller, with one more try where a login was refused."""

import asyncio
import math
from collections.abc import Callable

import psycopg

from fencepost.core.exchange import Failure
from fencepost.ports import Access, AccessUnavailable, StoreFailed
from fencepost.store import arrays
from fencepost.store.access import Written
from fencepost.store.failures import asked_for_password, login_refused, one_line

UNREADABLE = "the connection string cannot be read: postgresql://user@host:5432/name"


class Dialler:
    """Opens connections one at a time. `note` hears, in a line, what was not as it should be although it ended well."""

    def __init__(
        self,
        access: Access,
        note: Callable[[str], None],
        *,
        connect_timeout_seconds: float,
        answer_timeout_seconds: float,
    ) -> None:
        self._access = access
        self._note = note
        self._connect_timeout_seconds = connect_timeout_seconds
        self._answer_timeout_seconds = answer_timeout_seconds

    async def dial(self) -> psycopg.AsyncConnection:
        """Raises `StoreFailed`: REFUSED where the login was refused, else AWAY."""
        conninfo = await self._conninfo(anew=False)
        try:
            return await self._connect(conninfo)
        except (psycopg.Error, OSError) as failure:  # OSError: TimeoutError too
            again = await self._conninfo(anew=True) if asked_for_password(failure) else conninfo
            if again == conninfo:
                raise _failed(failure) from failure
        try:
            connection = await self._connect(again)
        except (psycopg.Error, OSError) as failure:
            raise _failed(failure) from failure
        self._note("the login was refused, and accepted with credentials read anew")
        return connection

    async def _conninfo(self, *, anew: bool) -> str:
        try:
            if isinstance(self._access, Written):
                return self._access.conninfo()
            return await asyncio.to_thread(self._access.conninfo, anew=anew)
        except AccessUnavailable as why:
            raise StoreFailed(Failure.AWAY, str(why)) from None

    async def _connect(self, conninfo: str) -> psycopg.AsyncConnection:
        async with asyncio.timeout(self._connect_timeout_seconds):
            connection = await psycopg.AsyncConnection.connect(
                conninfo,
                autocommit=True,
                prepare_threshold=None,
                client_encoding="utf8",
                connect_timeout=max(2, math.ceil(self._connect_timeout_seconds)),
                keepalives=1,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=math.ceil(self._answer_timeout_seconds * 1000),
            )
        arrays.teach(connection)
        return connection


def _failed(failure: Exception) -> StoreFailed:
    if isinstance(failure, psycopg.ProgrammingError):
        return StoreFailed(Failure.REFUSED, UNREADABLE)  # the driver quotes what it cannot read
    refused = login_refused(failure)
    return StoreFailed(Failure.REFUSED if refused else Failure.AWAY, one_line(failure))
