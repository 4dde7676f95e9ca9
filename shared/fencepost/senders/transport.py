"""Sends one request once and knows how far it got. What it promises, and why this engine: docs/transport.md."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fencepost.core.reply import Reply
from fencepost.deadline import Deadline
from fencepost.ports import SendCancelled
from fencepost.senders.dial import Dialer, Resolve, SystemResolver, tls_context
from fencepost.senders.pool import Pool
from fencepost.senders.progress import Progress
from fencepost.senders.request import Request
from fencepost.senders.trouble import Broken, Trouble, Unsent
from fencepost.senders.wire import Wire

BODY_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 100  # about 0.3 MB each under TLS
IDLE_SECONDS_MAX = 30.0  # by wall clock; a NAT may have forgotten an older flow
RESOLVER_THREADS = 16


class Transport:
    """One a process, used by one event loop at a time. `resolve`, `context` and `clock` are seams for tests."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        clock: Callable[[], float] = time.time,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolve")
        self._pool = Pool(
            Dialer(
                resolve=resolve or SystemResolver(self._threads, socket.getaddrinfo),
                context=context or tls_context(),
            ),
            connections_max=connections_max,
            idle_seconds_max=IDLE_SECONDS_MAX,
            clock=clock,
        )

    async def send(self, request: Request, *, timeout_seconds: float) -> Reply:
        """Send it, never twice. The deadline covers everything from the wait for a connection to the last byte.

        Raises nothing for the network; `SendCancelled` with the phase reached when the caller is cancelled.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        progress = Progress()
        if timeout_seconds <= 0:  # what begins is not stopped before it has read its socket
            return progress.reply(Trouble.TIMEOUT, "no time at all", 0.0)
        trouble: Trouble | None = None
        detail = ""
        try:
            async with Deadline(began + timeout_seconds, asked=lambda: progress.asked):
                await self._exchange(request, progress)
        except (Unsent, Broken) as wrong:
            trouble, detail = wrong.trouble, wrong.detail
        except TimeoutError:
            trouble, detail = Trouble.TIMEOUT, f"nothing more within {timeout_seconds:.3g} s"
        except asyncio.CancelledError:
            stopped = progress.reply(Trouble.CANCELLED, "stopped", loop.time() - began)
            raise SendCancelled(stopped) from None
        return progress.reply(trouble, detail, loop.time() - began)

    async def wake(self) -> None:
        """At the start of an invocation, before the first send: whatever idled may have been frozen.

        A dead connection costs doubt, a new one a round trip or three.
        """
        self._pool.drop_idle()

    async def close(self) -> None:
        """Drop every connection. A look-up under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._pool.close()

    async def _exchange(self, request: Request, progress: Progress) -> None:
        wire = await self._pool.acquire(request.origin)
        try:
            response = await wire.exchange(request, progress)
            try:
                await wire.read(response, partial(_take, wire, progress))
            except asyncio.CancelledError:
                wire.retire()
                raise
        finally:
            self._pool.release(wire)


def _take(wire: Wire, progress: Progress, chunk: bytes) -> None:
    """The body up to the cap. A longer one is not worth its connection."""
    left = BODY_BYTES_MAX - len(progress.body)
    progress.body += chunk[:left]
    if len(chunk) > left:
        wire.retire()
        raise Broken(Trouble.BODY_CUT, f"more than {BODY_BYTES_MAX} bytes")
