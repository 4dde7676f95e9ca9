"""Mail addresses as SMTP may carry them: one, without anything that could begin another command or header."""

NOT_IN_ADDRESS = frozenset(' ,;:<>()[]"\\\x7f') | {chr(code) for code in range(32)}


class NoAddress(ValueError):
    """It is none: one line why, which does not repeat it."""


def address_of(text: str) -> str:
    """The address, its domain as DNS knows it. Raises `NoAddress`.

    Other than ASCII before the @ would need SMTPUTF8 (RFC 6531) at every server on the way, and is refused.
    """
    local, at, domain = text.rpartition("@")
    if not (local and at and domain) or "@" in local or NOT_IN_ADDRESS.intersection(text):
        raise NoAddress("is no mail address")
    if not local.isascii():
        raise NoAddress("has other than ASCII before the @")
    try:
        return f"{local}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError:
        raise NoAddress("has a domain that is no name") from None
