"""One SMTP session for one letter: dial, greet, encrypt, log in, hand over. It knows how far it got.

Everything before the final dot is not sent; from the dot to its answer nobody knows (RFC 5321, 4.2.5 and 4.5.3.2.6;
RFC 1047). A session is never used again: after trouble an answer could be taken for that of the next letter.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Never, TypeVar, cast

import aiosmtplib

from fencepost.senders.progress import Progress
from fencepost.senders.smtp_settings import Account, SmtpSettings
from fencepost.senders.trouble import Broken, Trouble, Unsent

GOODBYE_SECONDS = 1.0  # a server that does not answer QUIT is left
GO_ON = 354
LINE_BEGINS_WITH_DOT = re.compile(rb"(?m)^\.")
STAGE = "stage"  # in a reply's headers: the command that was answered

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What is handed over, as it goes out."""

    sender: str = field(repr=False)
    recipient: str = field(repr=False)
    data: bytes = field(repr=False)


class Refused(Exception):
    """The server answered, and the session is over."""


class Client(aiosmtplib.SMTP):
    """Leaves at once: saying goodbye in TLS may take a silent peer half a minute."""

    def close(self) -> None:
        if self.transport is not None:
            cast("asyncio.Transport", self.transport).abort()
        super().close()


class Session:
    """Used once."""

    def __init__(
        self,
        settings: SmtpSettings,
        account: Account | None,
        context: ssl.SSLContext,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._account = account
        self._progress = progress
        self._writer: asyncio.StreamWriter | None = None  # kept: it closes what it writes to
        self._client = Client(
            hostname=settings.host,
            port=settings.port_number,
            local_hostname=settings.hello_name,
            use_tls=settings.security == "tls",
            start_tls=False,  # a step of our own
            timeout=None,  # whoever calls has a deadline for all of it
            tls_context=context,
        )

    async def hand_over(self, envelope: Envelope) -> None:
        """Afterwards the progress has the answer. Raises `Unsent`, or `Broken` for what broke off."""
        try:
            await self._steps(envelope)
        except Refused:
            pass
        finally:
            await self._leave()

    async def _steps(self, envelope: Envelope) -> None:
        client = self._client
        await self._step("connect", client.connect())
        await self._step("ehlo", client.ehlo())
        if self._settings.security == "starttls":
            await self._encrypt()
        if self._account is not None:
            await self._log_in(self._account)
        size = self._announced(len(envelope.data))
        await self._step("mail", client.mail(envelope.sender, options=size))
        await self._step("rcpt", client.rcpt(envelope.recipient))
        await self._step("data", self._content(envelope.data))

    async def _encrypt(self) -> None:
        if not self._client.supports_extension("starttls"):
            raise Unsent(Trouble.LACKING, "the server offers no STARTTLS")
        await self._step("starttls", self._client.starttls())
        await self._step("ehlo", self._client.ehlo())  # what was said before does not count

    async def _log_in(self, account: Account) -> None:
        """By one way only: a wrong password said three times may lock the account."""
        offered = self._client.server_auth_methods
        user, password = account.user, account.password
        if "plain" in offered:
            await self._step("auth", self._client.auth_plain(user, password))
        elif "login" in offered:
            await self._step("auth", self._client.auth_login(user, password))
        elif "cram-md5" in offered:
            await self._step("auth", self._client.auth_crammd5(user, password))
        else:
            raise Unsent(Trouble.LACKING, "the server offers no way to log in that we know")

    def _announced(self, size: int) -> list[str]:
        """RFC 1870. Raises `Unsent` for what the server says it does not take."""
        if not self._client.supports_extension("size"):
            return []
        limit = self._client.esmtp_extensions["size"].strip()
        if limit.isascii() and limit.isdigit() and 0 < int(limit) < size:
            raise Unsent(Trouble.TOO_LARGE, f"mail has {size} bytes, the server takes {limit}")
        return [f"SIZE={size}"]

    async def _content(self, data: bytes) -> None:
        """Once all but the dot has been taken, the dot."""
        ready = await self._client.execute_command(b"DATA")
        if ready.code != GO_ON:
            self._answered("data", ready.code, ready.message)
        protocol = self._client.protocol
        if protocol is None or protocol.transport is None:
            raise aiosmtplib.SMTPServerDisconnected("gone")
        transport = cast("asyncio.Transport", protocol.transport)
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        self._writer.write(LINE_BEGINS_WITH_DOT.sub(b"..", data))
        await self._writer.drain()
        if transport.is_closing():
            raise aiosmtplib.SMTPServerDisconnected("gone")
        self._progress.left()  # from here on the mail may be on its way
        protocol.write(b".\r\n")
        ended = await protocol.read_response(timeout=None)
        self._answered("end", ended.code, ended.message)

    async def _step(self, stage: str, work: Awaitable[Result]) -> Result:
        try:
            return await work
        except aiosmtplib.SMTPResponseException as answer:
            self._answered(stage, answer.code, answer.message)
        except ssl.SSLError as wrong:
            raise Unsent(Trouble.TLS, str(wrong.reason or type(wrong).__name__)) from wrong
        except (aiosmtplib.SMTPException, OSError) as wrong:
            raise _broken(stage, wrong) from wrong

    def _answered(self, stage: str, code: int, text: str) -> Never:
        if not 200 <= code < 600:  # no SMTP; how far it got stays as it is
            raise Broken(Trouble.PROTOCOL, f"no answer of SMTP at {stage}")
        self._progress.answered(code, {STAGE: stage})
        self._progress.body += text.encode(errors="replace")
        raise Refused

    async def _leave(self) -> None:
        """Politely, if there was an answer to everything."""
        client = self._client
        gone = (aiosmtplib.SMTPException, OSError, TimeoutError)
        try:
            if client.is_connected and self._progress.status is not None:
                with contextlib.suppress(*gone):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await client.quit()
        finally:
            client.close()


def _broken(stage: str, wrong: Exception) -> Exception:
    """Without the text of the error, which names the host."""
    if stage != "connect":
        return Broken(Trouble.CONNECTION_LOST, f"at {stage}")
    cause = wrong.__cause__ or wrong
    if isinstance(cause, ssl.SSLError):
        return Unsent(Trouble.TLS, str(cause.reason or type(cause).__name__))
    return Unsent(Trouble.CONNECT, type(cause).__name__)
