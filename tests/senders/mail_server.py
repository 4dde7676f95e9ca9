"""Mail servers for the sender's tests: a whole one (aiosmtpd), and one that follows a script line by line."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

from aiosmtpd.smtp import SMTP as Protocol
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.senders.peers import reset
from tests.senders.stage import CA

NAME = "localhost"
CERTIFICATE = CA.issue_cert(NAME)
USER, PASSWORD = "mailer", "verysecret"


def server_tls() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CERTIFICATE.configure_cert(context)
    return context


def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context


@dataclass
class Received:
    """What a whole server was told; aiosmtpd calls it."""

    mails: list[bytes] = field(default_factory=list)
    envelopes: list[tuple[str | None, list[str]]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0

    async def handle_DATA(self, server: Protocol, session: Session, envelope: Envelope) -> str:
        self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
        self.mails.append(cast("bytes", envelope.content))
        self.encrypted.append(session.ssl is not None or _over_tls(server))
        return "250 2.0.0 Ok: queued as 4F1C2"

    def authenticated(
        self, server: Protocol, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        self.logins.append(mechanism)
        right = LoginPassword(USER.encode(), PASSWORD.encode())
        return AuthResult(success=isinstance(data, LoginPassword) and data == right, handled=False)

    def mail(self) -> EmailMessage:
        """The only one."""
        (one,) = self.mails
        return read(one)


def _over_tls(server: Protocol) -> bool:
    return server.transport is not None and bool(server.transport.get_extra_info("sslcontext"))


def text_of(mail: Any) -> str:
    """Its text, a line's end being one character."""
    return str(mail.get_content()).replace("\r\n", "\n")


def read(mail: bytes) -> EmailMessage:
    return message_from_bytes(mail.replace(b"\r\n", b"\n"), policy=default)


@asynccontextmanager
async def mail_server(
    *, tls: bool = False, starttls: bool = True, **options: Any
) -> AsyncIterator[Received]:
    """`tls`: from the first byte. `starttls`: offered, and demanded before anything else."""
    received = Received()
    known = {
        "hostname": NAME,
        "authenticator": received.authenticated,
        "auth_require_tls": not tls,
        **({"tls_context": server_tls(), "require_starttls": True} if starttls and not tls else {}),
        **options,
    }
    loop = asyncio.get_running_loop()
    served: list[Protocol] = []

    def serve() -> Protocol:
        served.append(Protocol(received, loop=loop, **known))
        return served[-1]

    server = await loop.create_server(serve, "127.0.0.1", 0, ssl=server_tls() if tls else None)
    received.port = server.sockets[0].getsockname()[1]
    try:
        yield received
    finally:
        server.close()
        for one in served:
            if one.transport is not None:
                cast("asyncio.Transport", one.transport).abort()
            if one._handler_coroutine is not None:  # a failed handshake leaves it waiting
                one._handler_coroutine.cancel()
        await server.wait_closed()


class Line:
    """The server's end of one scripted session."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, told: "Told"
    ) -> None:
        self._reader, self._writer, self.told = reader, writer, told

    async def command(self) -> str:
        line = (await self._reader.readuntil(b"\r\n")).decode().removesuffix("\r\n")
        self.told.commands.append(line)
        return line

    async def say(self, text: str) -> None:
        self._writer.write(text.encode() + b"\r\n")
        await self._writer.drain()

    async def content(self) -> bytes:
        """To the dot."""
        taken = await self._reader.readuntil(b"\r\n.\r\n")
        self.told.letters.append(taken)
        return taken

    async def some(self, count: int) -> None:
        await self._reader.readexactly(count)

    def cut(self) -> None:
        reset(self._writer)


@dataclass
class Told:
    """What reached a scripted server."""

    port: int = 0
    sessions: int = 0
    commands: list[str] = field(default_factory=list)
    letters: list[bytes] = field(default_factory=list)

    @property
    def verbs(self) -> list[str]:
        return [command.split(" ")[0].upper() for command in self.commands]


Play = Callable[[Line], Awaitable[None]]


@asynccontextmanager
async def scripted(play: Play) -> AsyncIterator[Told]:
    """A server without TLS that plays the same for every session."""
    told = Told()
    playing: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.sessions += 1
        own = asyncio.current_task()
        assert own is not None
        playing.add(own)
        gone = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*gone):
            await play(Line(reader, writer, told))
        writer.transport.abort()
        playing.discard(own)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        for one in tuple(playing):
            one.cancel()
        await asyncio.gather(*tuple(playing), return_exceptions=True)
        await server.wait_closed()


GOOD = {
    "greeting": "220 mail.test ESMTP",
    "EHLO": "250-mail.test\r\n250 SIZE 50000000",
    "MAIL": "250 2.1.0 Ok",
    "RCPT": "250 2.1.5 Ok",
    "DATA": "354 go on",
    "dot": "250 2.0.0 Ok: queued as 4F1C2",
    "QUIT": "221 2.0.0 Bye",
}


def says(**other: str) -> Play:
    """A server that says this, and is good for the rest. "cut": it cuts the connection there, "": it says nothing."""
    answers = {**GOOD, **other}

    async def play(line: Line) -> None:
        await _say(line, answers["greeting"])
        while True:
            verb = (await line.command()).split(" ")[0].upper()
            await _say(line, answers[verb])
            if verb == "DATA" and answers["DATA"].startswith("354"):
                await line.content()
                await _say(line, answers["dot"])

    return play


async def _say(line: Line, text: str) -> None:
    if text == "cut":
        line.cut()
        raise ConnectionError
    if text == "":
        await asyncio.Event().wait()
    await line.say(text)
