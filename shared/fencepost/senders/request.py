"""A request and where it goes, taken apart once and checked before anything is dialled."""

import functools
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

PORTS = {"https": 443, "http": 80}
TARGET_SAFE = "/%:=&?~+!$,;'@()*[]"  # everything a path or query may hold as it is
URL_CHARACTERS_MAX = 16_384  # no server takes more, and our engine no more than 64 KiB
BLANK_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")
URLS_REMEMBERED = (
    1024  # most channels call few, again and again; taking one apart is a tenth of a send's work
)
NAME = re.compile(r"[a-z0-9._-]+")


class InvalidUrl(ValueError):
    """The text is no http(s) URL one may call. The message does not repeat it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who is called, and under which rules. Connections are shared only between equal origins."""

    scheme: str
    host: str = field(repr=False)  # ASCII, lower case; an IPv6 literal without brackets
    port: int
    private_allowed: bool = False  # whether its addresses may lie in private networks
    party: str = field(
        default="", repr=False
    )  # whose connections, where a provider ties them to one

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """What `Host` and `:authority` say: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Its target, headers and body stay out of every representation (G10)."""

    origin: Origin
    target: str = field(repr=False)  # path and query
    headers: tuple[tuple[str, str], ...] = field(repr=False)  # lower case names; no host, no length
    body: bytes = field(repr=False)
    method: str = "POST"  # GET where a provider is asked


@functools.lru_cache(URLS_REMEMBERED)
def read_url(url: str, *, private_allowed: bool = False) -> tuple[Origin, str]:
    """The origin and the target of `url`. Raises `InvalidUrl`.

    A URL with user or password is refused: they would end up in logs, and browsers and proxies disagree about them.
    """
    _short_enough(url)
    if BLANK_OR_CONTROL.search(url):
        raise InvalidUrl("it holds spaces or control characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as wrong:
        raise InvalidUrl("it cannot be taken apart") from wrong
    if parts.scheme not in PORTS or not host:
        raise InvalidUrl("it is not https://host/…")
    if "@" in parts.netloc:
        raise InvalidUrl("it holds a user name")
    origin = Origin(
        scheme=parts.scheme,
        host=_ascii_host(host),
        port=PORTS[parts.scheme] if port is None else port,
        private_allowed=private_allowed,
    )
    return origin, _target(parts.path, parts.query)


def _ascii_host(host: str) -> str:
    if ":" in host:
        if "%" in host:
            raise InvalidUrl("its IPv6 address names an interface")
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError as wrong:
            raise InvalidUrl("its IPv6 address is none") from wrong
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError as wrong:
        raise InvalidUrl("its host is no name") from wrong
    if not NAME.fullmatch(name):
        raise InvalidUrl("its host is no name")
    return name


def _target(path: str, query: str) -> str:
    target = quote(path or "/", safe=TARGET_SAFE)
    return _short_enough(f"{target}?{quote(query, safe=TARGET_SAFE)}" if query else target)


def _short_enough(text: str) -> str:
    """As it is written, and again as it is sent, where each letter may have become nine."""
    if len(text) > URL_CHARACTERS_MAX:
        raise InvalidUrl(f"it is longer than {URL_CHARACTERS_MAX} characters")
    return text
