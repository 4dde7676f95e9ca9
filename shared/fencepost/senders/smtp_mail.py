"""A mail made of a payload, by the standard library's `email`. Pure.

What changes from attempt to attempt is the `Date` alone. The `Message-ID` is made of the idempotency key: some readers
show two copies of one id once, and nobody promises to (RFC 5322, 3.6.4).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from fencepost.core.notification import Claimed
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.mail_address import NoAddress, address_of
from fencepost.senders.smtp_settings import SmtpSettings
from fencepost.senders.vocabulary import laid_over, raw_block

POLICY = SMTP.clone(cte_type="7bit")  # the same bytes whatever the server's extensions
NOTHING: Mapping[str, Any] = {"subject": "", "text": "", "html": "", "headers": {}}
HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,75}", re.ASCII)
OURS = {
    "bcc",
    "cc",
    "date",
    "from",
    "message-id",
    "resent-to",
    "return-path",
    "sender",
    "subject",
    "to",
}


class NoMail(ValueError):
    """There can be none: one line why, which quotes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail in its envelope, but for the date it is sent at."""

    sender: str = field(repr=False)
    recipient: str = field(repr=False)
    content: bytes = field(repr=False)  # headers and body, CRLF at every end of line

    def dated(self, now: float) -> bytes:
        """As it goes out at `now`, unix seconds."""
        date = format_datetime(datetime.fromtimestamp(int(now), UTC))
        return f"Date: {date}\r\n".encode() + self.content


def letter_of(claimed: Claimed, settings: SmtpSettings) -> tuple[bytes, Letter]:
    """The digest over what is read, and the letter. Raises `NoMail`."""
    try:
        recipient = address_of(claimed.recipient)
    except NoAddress as wrong:
        raise NoMail(f"recipient {wrong}") from None
    said = said_in(claimed.payload)
    message_id = f"<{claimed.idempotency_key}@{settings.sender[1].rpartition('@')[2]}>"
    read = {**said, "to": recipient, "from": settings.from_, "reply_to": settings.reply_to}
    try:
        digest = digest_of(json_body({**read, "message_id": message_id}))
        mail = _mail(said, recipient, message_id, settings)
        content = _boundaries(mail, claimed).as_bytes()
    except ValueError:  # its text would quote the payload
        raise NoMail("payload has no form as a mail") from None
    if not content.endswith(b"\r\n"):
        content += b"\r\n"  # the dot stands on a line of its own
    return digest, Letter(sender=settings.envelope_sender, recipient=recipient, content=content)


def said_in(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Subject, text, html and further headers; the `raw` block is laid over them. Raises `NoMail`."""
    raw = raw_block(payload, "smtp")
    if unknown := raw.keys() - NOTHING.keys():
        known = ", ".join(sorted(NOTHING))
        raise NoMail(f"raw.smtp knows {known}, and holds {len(unknown)} other")
    lines = [str(payload[key]) for key in ("body", "url") if payload.get(key)]
    ours = {
        "subject": payload.get("title", ""),
        "text": "\n\n".join(lines),
        "html": payload.get("html", ""),
    }
    said = {**NOTHING, **laid_over(ours, raw)}
    if not all(isinstance(said[key], str) for key in ("subject", "text", "html")):
        raise NoMail("raw.smtp: subject, text and html are text")
    if not (said["text"] or said["html"]):
        raise NoMail("nothing to read: no body, url, html or raw block with one")
    said["subject"] = " ".join(said["subject"].splitlines())
    return {**said, "headers": _headers(said["headers"])}


def _headers(said: object) -> dict[str, str]:
    if not isinstance(said, Mapping):
        raise NoMail("raw.smtp.headers is no object")
    for name, value in said.items():
        lower = name.lower()
        if (
            not HEADER_NAME.fullmatch(name)
            or lower in OURS
            or lower.startswith(("content-", "mime-"))
        ):
            raise NoMail("raw.smtp.headers names one that is ours, or none at all")
        if not isinstance(value, str) or not value.isprintable():
            raise NoMail("raw.smtp.headers holds what is no line of text")
    return dict(said)


def _mail(
    said: Mapping[str, Any], recipient: str, message_id: str, settings: SmtpSettings
) -> EmailMessage:
    mail = EmailMessage(policy=POLICY)
    mail["From"] = _address(*settings.sender)
    mail["To"] = _address("", recipient)
    if settings.replies_go_to is not None:
        mail["Reply-To"] = _address(*settings.replies_go_to)
    mail["Subject"] = said["subject"]
    mail["Message-ID"] = message_id
    for name, value in said["headers"].items():
        mail[name] = value
    if said["text"]:
        mail.set_content(said["text"])
    if said["html"] and said["text"]:
        mail.add_alternative(said["html"], subtype="html")
    elif said["html"]:
        mail.set_content(said["html"], subtype="html")
    return mail


def _address(name: str, address: str) -> Address:
    return Address(display_name=name, addr_spec=address)


def _boundaries(mail: EmailMessage, claimed: Claimed) -> EmailMessage:
    """Of the notification and not of chance, so that every attempt is the same bytes."""
    if mail.is_multipart():
        mail.set_boundary(f"=_{claimed.idempotency_key.hex}")
    return mail
