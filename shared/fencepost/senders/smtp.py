"""Mail by SMTP to a server of the operator's. The recipient is a mail address. No server drops a repeat: the channel
must choose its policy for doubt."""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import Outcome, Rejected
from fencepost.core.reply import Reply
from fencepost.deadline import Deadline
from fencepost.ports import Prepared, SendCancelled
from fencepost.senders.kind import SenderKind
from fencepost.senders.progress import Progress
from fencepost.senders.smtp_answer import meaning_of
from fencepost.senders.smtp_mail import Letter, NoMail, letter_of
from fencepost.senders.smtp_session import Envelope, Session
from fencepost.senders.smtp_settings import Account, SmtpSettings, read_account
from fencepost.senders.transport import Transport
from fencepost.senders.trouble import Broken, Trouble, Unsent


class Smtp:
    """The sender. `now` is wall time in unix seconds, for the date in a letter; `context` is a seam for tests."""

    facility = Facility()

    def __init__(
        self,
        settings: SmtpSettings,
        account: Account | None,
        *,
        context: ssl.SSLContext | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._account = account
        self._context = context or mail_tls()
        self._now = now

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            digest, letter = letter_of(claimed, self._settings)
        except NoMail as wrong:
            return Rejected(str(wrong))
        return Prepared(digest, letter)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        letter = cast("Letter", prepared.request)
        envelope = Envelope(
            sender=letter.sender, recipient=letter.recipient, data=letter.dated(self._now())
        )
        progress = Progress()
        began = asyncio.get_running_loop().time()
        trouble, detail = await self._hand_over(envelope, progress, began, timeout_seconds)
        return progress.reply(trouble, detail, asyncio.get_running_loop().time() - began)

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None  # a mail server tells nothing of what it took

    async def _hand_over(
        self, envelope: Envelope, progress: Progress, began: float, timeout_seconds: float
    ) -> tuple[Trouble | None, str]:
        """What went wrong on the way. Raises `SendCancelled` with the phase reached."""
        if timeout_seconds <= 0:
            return Trouble.TIMEOUT, "no time at all"
        try:
            session = Session(self._settings, self._account, self._context, progress)
            async with Deadline(began + timeout_seconds, asked=lambda: progress.asked):
                await session.hand_over(envelope)
        except (Unsent, Broken) as wrong:
            return wrong.trouble, wrong.detail
        except TimeoutError:
            return Trouble.TIMEOUT, f"nothing more within {timeout_seconds:g} s"
        except asyncio.CancelledError:
            took = asyncio.get_running_loop().time() - began
            raise SendCancelled(progress.reply(Trouble.CANCELLED, "stopped", took)) from None
        return None, ""


def mail_tls() -> ssl.SSLContext:
    """Verifying, TLS 1.2 or newer; no protocol of HTTP is offered."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def smtp(channel: Channel, secret: str | None, transport: Transport) -> Smtp:
    """The constructor of the kind `smtp`. Raises ValueError or `msgspec.ValidationError`."""
    settings = msgspec.convert(dict(channel.settings), SmtpSettings)
    account = read_account(secret)
    if account is not None and (why := settings.no_secret) is not None:
        raise ValueError(why)
    return Smtp(settings, account)


KIND = SenderKind(
    build=smtp,
    settings=SmtpSettings,
    facility=lambda _: Smtp.facility,
    no_secret=lambda settings: settings.no_secret,
)
