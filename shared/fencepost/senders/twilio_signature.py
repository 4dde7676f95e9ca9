"""X-Twilio-Signature: that a callback is Twilio's, and that its URL and form are what Twilio sent. Pure.

Source: twilio.com/docs/usage/security, *Validating requests*: base64 of the HMAC-SHA1, under the account's auth token,
of the whole URL followed by the form's fields, sorted by name, name and value joined without anything between. Twilio's
own libraries sort and count equal pairs once, and try the URL with and without its port, since both have been signed.
"""

import base64
import hmac
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

PORTS = {"https": 443, "http": 80}


def signature_of(auth_token: str, url: str, form: Iterable[tuple[str, str]]) -> str:
    """What Twilio would put into the header."""
    fields = "".join(name + value for name, value in sorted(set(form)))
    digest = hmac.digest(auth_token.encode(), (url + fields).encode(), "sha1")
    return base64.b64encode(digest).decode("ascii")


def is_signed(
    auth_token: str, url: str, form: Iterable[tuple[str, str]], signature: str | None
) -> bool:
    """Whether it is Twilio's. `url` is the one Twilio called, query and all; `form` the decoded fields."""
    if not auth_token or not signature:
        return False  # anybody can sign with no key
    fields = tuple(form)
    given = signature.encode()
    tried = (signature_of(auth_token, each, fields).encode() for each in _spellings(url))
    return any(hmac.compare_digest(each, given) for each in tried)


def _spellings(url: str) -> Iterator[str]:
    """As it is, and with its port left out or put in."""
    yield url
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if port is not None:
        yield parts._replace(netloc=host).geturl()
    elif parts.scheme in PORTS:
        yield parts._replace(netloc=f"{host}:{PORTS[parts.scheme]}").geturl()
