"""The settings of an SMTP channel, and the account it logs in with."""

from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Annotated, Literal

import msgspec

from fencepost.senders.mail_address import address_of
from fencepost.senders.pattern import like

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
HOST = like(r"^[!-~]+$", "a name or an address of a host, in ASCII and without spaces")
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class SmtpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`host` and `from` are needed."""

    host: Annotated[str, HOST]
    from_: str = msgspec.field(name="from")  # `Name <address>` or an address
    port: Port | None = None  # 587, with `tls` 465, with `none` 25
    security: Literal["starttls", "tls", "none"] = "starttls"
    reply_to: str | None = None
    return_path: str | None = None  # where bounces go; left out: the address of `from`
    hello_name: Annotated[str, HOST] = "localhost"

    def __post_init__(self) -> None:
        for name, text in (("from", self.from_), ("reply_to", self.reply_to)):
            if text is not None and not text.isprintable():
                raise ValueError(f"{name} holds control characters")
        _ = (self.sender, self.replies_go_to)
        if self.return_path is not None:
            address_of(self.return_path)

    @property
    def sender(self) -> tuple[str, str]:
        return named(self.from_)

    @property
    def replies_go_to(self) -> tuple[str, str] | None:
        return None if self.reply_to is None else named(self.reply_to)

    @property
    def envelope_sender(self) -> str:
        return address_of(self.return_path or self.sender[1])

    @property
    def no_secret(self) -> str | None:
        """Why nobody may log in; None where somebody may."""
        if self.security == "none":
            return "security is none, and the password would travel in the clear"
        return None

    @property
    def port_number(self) -> int:
        return self.port or PORTS[self.security]


@dataclass(frozen=True, slots=True)
class Account:
    """Never shown."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def named(text: str) -> tuple[str, str]:
    """Name and address of `Name <address>`. Raises `NoAddress`."""
    name, address = parseaddr(text)
    return name, address_of(address)


def read_account(secret: str | None) -> Account | None:
    """`user:password`, the first colon between. None: nobody logs in. Raises ValueError."""
    text = (secret or "").strip("\r\n")
    if not text:
        return None
    user, colon, password = text.partition(":")
    if not (user and colon and password) or not text.isprintable():
        raise ValueError("the secret is no user:password")
    return Account(user, password)
