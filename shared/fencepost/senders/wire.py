"""One open connection, h1 or h2, over httpunk: the only file that knows the engine (see docs/transport.md).

httpunk 0.4.5 is pinned exactly. Where its public surface cannot say how far a request got, or leaves a cancelled h2
stream open, this file goes one step below it, at the places marked `below the surface`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from httpunk import Backend, H1Connection, H2Connection
from httpunk import Request as EngineRequest
from httpunk._backend.asyncio import _AsyncioStream
from httpunk.exceptions import (
    ConnectionClosedError,
    GoAwayError,
    H1IncompleteMessageError,
    HTTPunkError,
    StreamResetError,
)
from httpunk.h2.share import H2ResponseBody
from httpunk.http import HeaderMap
from httpunk.types import Response

from fencepost.senders.progress import Progress
from fencepost.senders.request import Origin, Request
from fencepost.senders.trouble import Broken, Trouble, Unsent

PROTOCOL_ERROR = 0x1
REFUSED_STREAM = 0x7
CANCEL = 0x8
STREAMS_ASSUMED = 100  # where the server names no limit
STREAMS_SHARE = 0.8  # of the server's limit; the rest is room for what is ending
STREAM_WINDOW_BYTES = 65_535  # as much of an answer as may wait unread, a stream


class Wire(Protocol):
    """One connection. `in_flight` and `idle_since` are the pool's notes."""

    origin: Origin
    in_flight: int
    idle_since: float

    @property
    def room(self) -> int:
        """How many exchanges it carries at once."""
        ...

    @property
    def patient(self) -> bool:
        """Whoever finds it full waits for it: another connection would not be welcome."""
        ...

    @property
    def usable(self) -> bool:
        """Whether a new exchange may begin on it."""
        ...

    async def start(self) -> None:
        """Raises `Unsent`."""
        ...

    async def exchange(self, request: Request, progress: Progress) -> Response:
        """Send it and wait for the head. Raises `Broken`; `progress` tells how far it got."""
        ...

    async def read(self, response: Response, take: Callable[[bytes], None]) -> None:
        """Hand over the body as it comes. Raises `Broken`, and what `take` raises: the rest is given up then."""
        ...

    def retire(self) -> None:
        """Nothing new on it; what is in flight may end."""
        ...

    def abort(self) -> None:
        """Drop the socket now."""
        ...

    async def close(self) -> None:
        """After `abort`: wait until nothing of it is left."""
        ...


class Stream(_AsyncioStream):  # below the surface; the engine's internals carry no types
    """The byte stream under a connection. It knows when a byte really leaves."""

    _transport: Any

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.on_write: Callable[[], None] = _nobody

    @property
    def lost(self) -> bool:
        return bool(self._conn_lost or self._transport.is_closing())

    @property
    def protocol(self) -> str | None:
        encrypted = self._transport.get_extra_info("ssl_object")
        return None if encrypted is None else encrypted.selected_alpn_protocol()

    async def send_all(self, data: bytes) -> None:
        if self._transport.is_closing():  # asyncio would drop the bytes silently
            raise BrokenPipeError("connection lost")
        self.on_write()
        await super().send_all(data)  # type: ignore[no-untyped-call]

    def eof_received(self) -> bool:
        super().eof_received()  # type: ignore[no-untyped-call]
        return False  # TLS cannot stay half open, and no client here wants to

    def abort(self) -> None:
        # The engine's own would wait on plain TCP until a mute peer has read our last bytes.
        self._transport.abort()


def _nobody() -> None: ...


class _Engine:
    """What both protocols share: the life of the socket, and the body of an answer."""

    def __init__(self, stream: Stream, origin: Origin, connection: Any) -> None:
        self.origin = origin
        self.in_flight = 0
        self.idle_since = 0.0
        self._stream = stream
        self._connection = connection
        self._retired = False

    @property
    def usable(self) -> bool:
        return not (self._retired or self._connection.closed or self._stream.lost)

    async def start(self) -> None:
        try:
            await self._connection.__aenter__()
        except (HTTPunkError, OSError) as wrong:
            raise Unsent(Trouble.HANDSHAKE, type(wrong).__name__) from wrong

    async def read(self, response: Response, take: Callable[[bytes], None]) -> None:
        inner: Any = response.aiter_bytes()
        try:
            async for chunk in inner:
                take(chunk)
        except (HTTPunkError, OSError) as wrong:
            raise Broken(Trouble.BODY_LOST, type(wrong).__name__) from wrong
        finally:
            await inner.aclose()
            await response.aclose()

    def retire(self) -> None:
        self._retired = True

    def abort(self) -> None:
        self._retired = True
        self._stream.abort()

    async def close(self) -> None:
        await self._connection.__aexit__(None, None, None)


class H1Wire(_Engine):
    """HTTP/1.1: one exchange at a time."""

    room = 1
    patient = False

    def __init__(self, stream: Stream, origin: Origin) -> None:
        engine = H1Connection(stream, authority=origin.authority, backend=Backend.asyncio)
        super().__init__(stream, origin, engine)

    async def exchange(self, request: Request, progress: Progress) -> Response:
        headers = HeaderMap([("host", self.origin.authority), *request.headers])
        message = EngineRequest(request.method, request.target, headers=headers, body=request.body)
        self._stream.on_write = progress.left
        try:
            response: Response = await self._connection.send_request(message)
        except (HTTPunkError, OSError) as wrong:
            raise Broken(_trouble(wrong), type(wrong).__name__) from wrong
        finally:
            self._stream.on_write = _nobody
        if response.is_upgrade:  # nobody asked for one; the bytes that follow are not HTTP
            self.abort()
        progress.answered(response.status, _flat(response.headers))
        return response


class H2Wire(_Engine):
    """HTTP/2: as many exchanges at once as the server allows, less a reserve."""

    def __init__(self, stream: Stream, origin: Origin) -> None:
        engine = H2Connection(
            stream,
            authority=origin.authority,
            scheme=origin.scheme,
            backend=Backend.asyncio,
            initial_window_size=STREAM_WINDOW_BYTES,
        )
        super().__init__(stream, origin, engine)
        self._driver: Any = engine._conn  # below the surface: stream ids and RST_STREAM

    @property
    def room(self) -> int:
        limit = self._driver.peer_max_concurrent_streams
        return max(1, int((STREAMS_ASSUMED if limit is None else limit) * STREAMS_SHARE))

    @property
    def patient(self) -> bool:
        """A server that allows one stream will allow more when it knows us: APNs does so after the first request
        with a good token, and again after a refused one. A hundred connections of one stream would look like an attack.
        """
        limit = self._driver.peer_max_concurrent_streams
        return limit is not None and limit <= 1

    async def exchange(self, request: Request, progress: Progress) -> Response:
        stream = await self._opened(request)
        progress.left()
        try:
            self._driver._send_body_background(stream, request.body)
            await stream.headers_evt.wait()
        except asyncio.CancelledError:
            # 0.4.5 would leave the stream open, and its slot taken for good. A connection whose
            # streams time out is suspect anyway: it gets no new ones.
            self.retire()
            self._driver._reset(stream, CANCEL)
            raise
        if stream.status is None and stream.stop is None:  # 0.4.5 lets a head without one through
            self.retire()
            self._driver._reset(stream, PROTOCOL_ERROR)
            raise Broken(Trouble.PROTOCOL, "a head without a status")
        if stream.status is None:
            raise self._broken(stream, progress)
        progress.answered(stream.status, _flat(stream.headers))
        body: Any = H2ResponseBody(stream, self._driver)  # type: ignore[no-untyped-call]
        return Response(stream.status, stream.headers, body)

    async def _opened(self, request: Request) -> Any:
        headers = HeaderMap(list(request.headers))
        try:
            return await self._driver._open_stream(
                request.method, request.target, headers, end_stream=not request.body, is_head=False
            )
        except GoAwayError as wrong:
            raise Broken(Trouble.GONE_AWAY, "before the stream was opened") from wrong
        except (HTTPunkError, OSError) as wrong:
            raise Broken(Trouble.CONNECTION_LOST, type(wrong).__name__) from wrong

    def _broken(self, stream: Any, progress: Progress) -> Broken:
        wrong = self._driver._stopped_error(stream, stream.stop)
        match wrong:
            case StreamResetError() if int(wrong.error_code) == REFUSED_STREAM:
                progress.refused()
                return Broken(Trouble.STREAM_REFUSED, "REFUSED_STREAM")
            case GoAwayError() if wrong.last_stream_id < stream.id:
                progress.refused()
                return Broken(Trouble.GONE_AWAY, "above the last stream of GOAWAY")
            case StreamResetError():
                return Broken(Trouble.CONNECTION_LOST, f"RST_STREAM {int(wrong.error_code)}")
            case _:
                return Broken(_trouble(wrong), type(wrong).__name__)


def _trouble(wrong: Exception) -> Trouble:
    lost = ConnectionClosedError | H1IncompleteMessageError | GoAwayError | OSError
    return Trouble.CONNECTION_LOST if isinstance(wrong, lost) else Trouble.PROTOCOL


def _flat(headers: HeaderMap) -> dict[str, str]:
    """Lower case names; repeated ones joined, as RFC 9110 allows."""
    flat: dict[str, str] = {}
    for name, value in headers.items():
        text = value.decode("latin-1")
        flat[name] = f"{flat[name]}, {text}" if name in flat else text
    return flat
