"""HTTP/1.1, as much of it as a webhook receiver needs: one request after another, bodies with a length."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """One whole request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answering(Protocol):
    """Who answers: now or later, through the connection it is given."""

    def asked(self, connection: "Connection", asked: Asked) -> None: ...


class Connection(asyncio.Protocol):
    """One sender's connection. Tells the waiting answer when the sender leaves."""

    def __init__(self, answering: Answering, connections: "set[Connection]") -> None:
        self._answering, self._connections = answering, connections
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting = False  # for an answer to the request under way
        self.deaf = False  # a path that died without a word: what comes in is never heard
        self.on_left: Callback | None = None

    @property
    def idle(self) -> bool:
        return not self._waiting

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self.on_left is not None:
            self.on_left()

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            return
        self._buffer += data
        self._next()

    def answer(self, status: int, headers: Mapping[str, str] = {}, body: bytes = b"") -> None:
        """The whole answer; the connection stays for the next request."""
        self.write(head(status, headers, len(body)) + body)
        self.answered()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def answered(self) -> None:
        self._waiting, self.on_left = False, None
        self._next()

    def cut(self) -> None:
        """Reset it, with no byte of an answer."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _next(self) -> None:
        if self._waiting:
            return
        try:
            asked = take_request(self._buffer)
        except ValueError:
            self.write(head(400, {"connection": "close"}, 0))
            self.close()
            return
        if asked is not None:
            self._waiting = True
            self._answering.asked(self, asked)


class Callback(Protocol):
    def __call__(self) -> None: ...


def take_request(buffer: bytearray) -> Asked | None:
    """Take one whole request off the buffer; None: not all of it is here. ValueError: not a request we take."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_BYTES_MAX:
            raise ValueError("head too long")
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    length = int(headers.get("content-length", "0"))
    if "transfer-encoding" in headers or not 0 <= length <= BODY_BYTES_MAX:
        raise ValueError("a body without a length, or too long a body")
    if len(buffer) < end + 4 + length:
        return None
    body = bytes(buffer[end + 4 : end + 4 + length])
    del buffer[: end + 4 + length]
    return Asked(method, path, headers, body)


def head(status: int, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer_json(connection: Connection, value: object) -> None:
    connection.answer(200, {"content-type": "application/json"}, json.dumps(value).encode())
