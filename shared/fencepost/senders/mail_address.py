"""Mail addresses as SMTP may carry them: one, without anything that could begin another command or header."""

import re

# RFC 5322, 3.2.3 (dot-atom), and names as DNS and mail servers know them. No quoted local part: nobody has one.
LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
DOMAIN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)


class NoAddress(ValueError):
    """It is none: one line why, which does not repeat it."""


def address_of(text: str) -> str:
    """The address, its domain as DNS knows it. Raises `NoAddress`.

    Other than ASCII before the @ would need SMTPUTF8 (RFC 6531) at every server on the way, and is refused.
    """
    local, _, domain = text.rpartition("@")
    if local and domain and not local.isascii():
        raise NoAddress("has other than ASCII before the @")
    try:
        named = domain.encode("idna").decode("ascii")
    except UnicodeError:
        raise NoAddress("has a domain that is no name") from None
    if not (LOCAL.fullmatch(local) and DOMAIN.fullmatch(named)):
        raise NoAddress("is no mail address")
    return f"{local}@{named}"
