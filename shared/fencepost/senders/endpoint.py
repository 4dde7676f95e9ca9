"""A provider's address as the operator writes it into a channel's settings."""

from fencepost.senders.address import is_public
from fencepost.senders.request import InvalidUrl, Origin, read_url


def endpoint(url: str) -> tuple[Origin, str]:
    """The origin, and the path without a slash at its end. Raises `InvalidUrl`.

    Whoever may configure a channel may also name a gateway in a private network: the guard is for addresses that
    producers write. Credentials travel with every request, so that it must be https, but to this machine or to a
    private address written as such.
    """
    origin, target = read_url(url, private_allowed=True)
    if not (origin.secure or _is_near(origin.host)):
        raise InvalidUrl("it is http to another machine, and credentials would travel in clear")
    return origin, target.rstrip("/")


def _is_near(host: str) -> bool:
    written_as_address = ":" in host or host.replace(".", "").isdecimal()
    return host == "localhost" or (written_as_address and not is_public(host))
