"""Servers for the fault matrix: real sockets, real TLS, and a script that decides what each connection does.

A script is written once for both protocols. It is driven by requests and events, never by time.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

Headers = tuple[tuple[str, str], ...]


@dataclass
class Asked:
    """One whole request."""

    stream: int
    headers: dict[str, str]
    body: bytes
    connection: int


class Peer(Protocol):
    """The server's end of one connection."""

    number: int  # which connection it is, from 1

    async def request(self) -> Asked:
        """The next whole request."""
        ...

    async def opened(self) -> Asked:
        """The next request whose headers have come, whole or not."""
        ...

    async def head(self, asked: Asked, status: int, headers: Headers = ()) -> None: ...

    async def piece(self, asked: Asked, data: bytes, *, last: bool = False) -> None: ...

    async def answer(
        self, asked: Asked, status: int = 200, body: bytes = b"ok", headers: Headers = ()
    ) -> None: ...

    def reset(self) -> None:
        """RST, now."""
        ...

    def fin(self) -> None:
        """Goodbye, now."""
        ...


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class Log:
    """What reached a server."""

    connections: int = 0
    requests: list[Asked] = field(default_factory=list)
    poured: int = 0
    stream_resets: list[int] = field(default_factory=list)
    handlers: set[asyncio.Task[None]] = field(default_factory=set)


class H1Peer:
    """HTTP/1.1, as much of it as a scripted receiver needs."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log
    ) -> None:
        self._reader, self._writer, self._log = reader, writer, log
        self.number = log.connections

    async def opened(self) -> Asked:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = (line.split(": ", 1) for line in lines[1:] if line)
        headers = {name.lower(): value for name, value in named}
        headers[":method"], headers[":path"], _ = lines[0].split(" ")
        return Asked(0, headers, b"", self.number)

    async def request(self) -> Asked:
        asked = await self.opened()
        asked.body = await self._reader.readexactly(int(asked.headers.get("content-length", "0")))
        self._log.requests.append(asked)
        return asked

    async def head(self, asked: Asked, status: int, headers: Headers = ()) -> None:
        framed = (
            headers
            if any(name == "content-length" for name, _ in headers)
            else (*headers, ("transfer-encoding", "chunked"))
        )
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in framed)]
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def piece(self, asked: Asked, data: bytes, *, last: bool = False) -> None:
        end = b"0\r\n\r\n" if last else b""
        await self.write((b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + end)
        self._log.poured += len(data)

    async def answer(
        self, asked: Asked, status: int = 200, body: bytes = b"ok", headers: Headers = ()
    ) -> None:
        await self.head(asked, status, (*headers, ("content-length", str(len(body)))))
        await self.write(body)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        reset(self._writer)

    def fin(self) -> None:
        self._writer.close()


class H2Peer:
    """HTTP/2 over the `h2` package, with raw frames where that package is too polite."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        log: Log,
        streams_max: int | None,
    ) -> None:
        self._reader, self._writer, self._log = reader, writer, log
        self.number = log.connections
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        if streams_max is not None:
            named = {SettingCodes.MAX_CONCURRENT_STREAMS: streams_max}
            self._h2.local_settings = Settings(client=False, initial_values=named)
        self._asked: asyncio.Queue[Asked] = asyncio.Queue()
        self._begun: asyncio.Queue[Asked] = asyncio.Queue()
        self._open: dict[int, Asked] = {}
        self._moved = asyncio.Event()

    async def listen(self) -> None:
        """Read until the client leaves."""
        self._h2.initiate_connection()
        await self._flush()
        while data := await self._reader.read(65536):
            for event in self._h2.receive_data(data):
                self._take(event)
            self._moved.set()
            await self._flush()

    def _take(self, event: object) -> None:
        match event:
            case RequestReceived():
                headers = {str(name): str(value) for name, value in event.headers or ()}
                asked = Asked(event.stream_id or 0, headers, b"", self.number)
                self._open[asked.stream] = asked
                self._begun.put_nowait(asked)
            case DataReceived():
                asked = self._open[event.stream_id or 0]
                asked.body += event.data or b""
                self._h2.acknowledge_received_data(
                    event.flow_controlled_length or 0, event.stream_id or 0
                )
            case StreamEnded():
                asked = self._open[event.stream_id or 0]
                self._log.requests.append(asked)
                self._asked.put_nowait(asked)
            case StreamReset():
                self._log.stream_resets.append(event.stream_id or 0)
            case WindowUpdated():
                pass
            case _:
                pass

    async def request(self) -> Asked:
        return await self._asked.get()

    async def opened(self) -> Asked:
        return await self._begun.get()

    async def head(self, asked: Asked, status: int, headers: Headers = ()) -> None:
        self._h2.send_headers(asked.stream, [(":status", str(status)), *headers])
        await self._flush()

    async def piece(self, asked: Asked, data: bytes, *, last: bool = False) -> None:
        while data:
            room = min(self._h2.local_flow_control_window(asked.stream), 16384)
            if room <= 0:
                self._moved.clear()
                await self._moved.wait()
                continue
            self._h2.send_data(asked.stream, data[:room])
            self._log.poured += len(data[:room])
            data = data[room:]
            await self._flush()
        if last:
            self._h2.end_stream(asked.stream)
            await self._flush()

    async def answer(
        self, asked: Asked, status: int = 200, body: bytes = b"ok", headers: Headers = ()
    ) -> None:
        await self.head(asked, status, headers)
        await self.piece(asked, body, last=True)

    async def refuse(self, asked: Asked, error_code: int = 7) -> None:
        """RST_STREAM; 7 is REFUSED_STREAM."""
        self._h2.reset_stream(asked.stream, error_code)
        await self._flush()

    async def go_away(self, last_stream: int, error_code: int = 0) -> None:
        """GOAWAY, and the connection goes on answering what it covers."""
        frame = GoAwayFrame(0, last_stream_id=last_stream, error_code=error_code)
        self._writer.write(frame.serialize())
        await self._writer.drain()

    async def allow(self, streams_max: int) -> None:
        """SETTINGS: so many streams at once from now on."""
        self._h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: streams_max})
        await self._flush()

    async def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()

    def reset(self) -> None:
        reset(self._writer)

    def fin(self) -> None:
        self._writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Server:
    """Listens on a free port of the loopback and lets `script` treat every connection."""

    def __init__(
        self, script: Script, context: ssl.SSLContext | None, streams_max: int | None = None
    ) -> None:
        self._script, self._context, self._streams_max = script, context, streams_max
        self.log = Log()
        self.port = 0
        self.listens = True  # False: says not even its HTTP/2 settings

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.log.connections += 1
        served = asyncio.current_task()
        assert served is not None
        self.log.handlers.add(served)
        gone = (ConnectionError, asyncio.IncompleteReadError, ProtocolError, ssl.SSLError)
        try:
            with contextlib.suppress(*gone, asyncio.CancelledError):
                await self._speak(reader, writer)
        finally:  # a script with a bug is told by asyncio, and waited for by nobody
            writer.transport.abort()
            self.log.handlers.discard(served)

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        encrypted = writer.get_extra_info("ssl_object")
        if encrypted is None or encrypted.selected_alpn_protocol() != "h2":
            await self._script(H1Peer(reader, writer, self.log))
            return
        peer = H2Peer(reader, writer, self.log, self._streams_max)
        if not self.listens:
            await self._script(peer)
            return
        listening = asyncio.ensure_future(peer.listen())
        script = asyncio.ensure_future(self._script(peer))
        try:
            await asyncio.wait({listening, script}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (listening, script):
                each.cancel()
            ended = await asyncio.gather(listening, script, return_exceptions=True)
        for wrong in ended:
            if isinstance(wrong, Exception):
                raise wrong

    async def close(self) -> None:
        for _ in range(50):  # asyncio would leak what it has accepted but not yet greeted
            await asyncio.sleep(0)
        self._server.close()
        for handler in tuple(self.log.handlers):
            handler.cancel()
        while self.log.handlers:
            await asyncio.wait(set(self.log.handlers))
        await self._server.wait_closed()
