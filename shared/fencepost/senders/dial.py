"""Dials: resolves by itself, vets every address, and connects to the very address it vetted.

There is no second look-up between check and connect, so a name that changes its mind (DNS rebinding) gains nothing.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor

from msgspec import Struct

from fencepost.senders.address import is_public
from fencepost.senders.request import Origin
from fencepost.senders.trouble import Trouble, Unsent
from fencepost.senders.wire import H1Wire, H2Wire, Stream, Wire

ADDRESSES_MAX = 4  # tried one after the other
CONNECT_SECONDS = 3.0  # an address, where there is another one to try
TLS_SHUTDOWN_SECONDS = 1.0  # a peer that does not say goodbye is left
ALPN = ["h2", "http/1.1"]


class Endpoint(Struct, frozen=True):
    """A resolved address as the socket wants it."""

    family: int
    address: tuple[str | int, ...]

    @property
    def host(self) -> str:
        return str(self.address[0])


Resolve = Callable[[str, int], Awaitable[Sequence[Endpoint]]]


def tls_context(cafile: str | None = None) -> ssl.SSLContext:
    """Verifying, TLS 1.2 or newer, h2 before http/1.1. Costly (16 ms): build one a process."""
    context = ssl.create_default_context(cafile=cafile)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(ALPN)
    return context


class SystemResolver:
    """getaddrinfo on threads of its own: a stuck look-up cannot be stopped, only left behind."""

    def __init__(
        self, threads: Executor, getaddrinfo: Callable[..., Sequence[tuple[object, ...]]]
    ) -> None:
        self._threads = threads
        self._getaddrinfo = getaddrinfo

    async def __call__(self, host: str, port: int) -> Sequence[Endpoint]:
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._threads, self._ask, host, port)
        except socket.gaierror as wrong:
            unknown = wrong.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            trouble = Trouble.UNKNOWN_NAME if unknown else Trouble.NAME_LOOKUP
            raise Unsent(trouble, f"getaddrinfo says {wrong.errno}") from wrong
        except (OSError, UnicodeError) as wrong:
            raise Unsent(Trouble.NAME_LOOKUP, type(wrong).__name__) from wrong
        return answers

    def _ask(self, host: str, port: int) -> list[Endpoint]:
        found = self._getaddrinfo(host, port, type=socket.SOCK_STREAM)
        endpoints = [Endpoint(family, address) for family, _, _, _, address in found]  # type: ignore[arg-type]
        return list(dict.fromkeys(endpoints))


class Dialer:
    """Opens one connection to an origin. Raises `Unsent` and nothing else."""

    def __init__(self, *, resolve: Resolve, context: ssl.SSLContext) -> None:
        self._resolve = resolve
        self._context = context

    async def __call__(self, origin: Origin) -> Wire:
        endpoints = vetted(await self._resolve(origin.host, origin.port), origin)
        connected = await first_connected(endpoints)
        stream = await self._stream(connected, origin)
        return await _spoken(stream, origin)

    async def _stream(self, connected: socket.socket, origin: Origin) -> Stream:
        loop = asyncio.get_running_loop()
        # Not in one step: cancelled before its first turn, asyncio would forget a socket that is to speak TLS.
        plain, stream = await loop.create_connection(Stream, sock=connected)
        if origin.secure:
            await self._encrypt(plain, stream, origin)
        return stream

    async def _encrypt(self, plain: asyncio.Transport, stream: Stream, origin: Origin) -> None:
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                plain,
                stream,
                self._context,
                server_hostname=origin.host,
                ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS,
            )
        except ssl.SSLCertVerificationError as wrong:
            # Its text names the host.
            raise Unsent(Trouble.TLS, f"certificate not accepted ({wrong.verify_code})") from wrong
        except OSError as wrong:
            raise Unsent(Trouble.TLS, _cause(wrong)) from wrong
        stream.connection_made(encrypted)  # type: ignore[no-untyped-call]


def vetted(endpoints: Sequence[Endpoint], origin: Origin) -> Sequence[Endpoint]:
    """The addresses, if every single one may be called: a name that mixes public and private ones is up to no good."""
    if not endpoints:
        raise Unsent(Trouble.NAME_LOOKUP, "no address")
    if not origin.private_allowed and not all(is_public(each.host) for each in endpoints):
        raise Unsent(Trouble.ADDRESS_FORBIDDEN, "it resolves to a network that is not public")
    return endpoints[:ADDRESSES_MAX]


async def first_connected(endpoints: Sequence[Endpoint]) -> socket.socket:
    """A connected socket to the first address that answers."""
    *others, last = endpoints
    for endpoint in others:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await _connected(endpoint)
        except (Unsent, TimeoutError):
            continue
    return await _connected(last)


async def _connected(endpoint: Endpoint) -> socket.socket:
    loop = asyncio.get_running_loop()
    opened = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(opened, endpoint.address)
    except OSError as wrong:
        opened.close()
        raise Unsent(Trouble.CONNECT, _cause(wrong)) from wrong
    except BaseException:
        opened.close()
        raise
    return opened


async def _spoken(stream: Stream, origin: Origin) -> Wire:
    """The connection in the protocol that was agreed on; a failed start leaves no socket behind."""
    wire: Wire = H2Wire(stream, origin) if stream.protocol == "h2" else H1Wire(stream, origin)
    try:
        await wire.start()
    except BaseException:
        wire.abort()
        await wire.close()
        raise
    return wire


def _cause(wrong: OSError) -> str:
    """What the system said, without the address asyncio would add."""
    if isinstance(wrong, ssl.SSLError):
        return str(wrong.reason or "TLS error")
    return type(wrong).__name__ if wrong.errno is None else f"{type(wrong).__name__} {wrong.errno}"
