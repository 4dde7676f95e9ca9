"""A provider's address as the operator writes it into a channel's settings."""

from fencepost.senders.request import Origin, read_url


def endpoint(url: str) -> tuple[Origin, str]:
    """The origin, and the path without a slash at its end. Raises `InvalidUrl`.

    Whoever may configure a channel may also name a gateway in a private network, or one on this machine without TLS:
    the guard is for addresses that producers write.
    """
    origin, target = read_url(url, private_allowed=True)
    return origin, target.rstrip("/")
