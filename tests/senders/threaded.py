"""A scripted server on a thread of its own, beside a worker that has its own loop."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.senders.peers import Script, Server

BOUND_SECONDS = 120.0


@contextmanager
def serving(script: Script, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Gives its port on the loopback."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = Server(script, context)
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(BOUND_SECONDS)
    try:
        yield server.port
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(BOUND_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(BOUND_SECONDS)
        loop.close()
