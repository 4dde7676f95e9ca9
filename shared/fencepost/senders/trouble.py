"""What can go wrong on the way to a provider, as short codes that reach the ledger and never name anyone."""

from enum import StrEnum


class Trouble(StrEnum):
    """`Reply.reason`."""

    UNKNOWN_NAME = "unknown_name"  # the resolver says that there is no such host
    NAME_LOOKUP = "name_lookup"  # the resolver did not answer, or with nonsense
    ADDRESS_FORBIDDEN = (
        "address_forbidden"  # the host resolves to an address that may not be called
    )
    CONNECT = "connect"
    TLS = "tls"
    HANDSHAKE = "handshake"  # HTTP/2 settings never came, or were refused
    STREAM_REFUSED = "stream_refused"  # RST_STREAM(REFUSED_STREAM): not processed, says RFC 9113
    GONE_AWAY = "gone_away"  # GOAWAY below our stream, or before it was opened
    CONNECTION_LOST = "connection_lost"
    PROTOCOL = "protocol"  # the peer does not speak HTTP as it should
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    CLOSED = "closed"  # the transport was closed
    BODY_CUT = "body_cut"  # an answer's body longer than the cap; the answer stands
    LACKING = "lacking"  # the server lacks what the channel wants of it (TLS, a way to log in)
    TOO_LARGE = "too_large"  # more than the server says it takes
    BODY_LOST = "body_lost"  # an answer's body broke off; the answer stands
    NO_KEYS = "no_keys"  # what a request is signed with could not be had; nothing left
    NOT_GRANTED = "not_granted"  # whoever gives access tokens could not now; nothing left
    KEYS_REFUSED = "keys_refused"  # the answer refuses them, and others may be had


class Unsent(Exception):
    """Provably no byte of the request left. `detail` is one line without host, address or path."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble = trouble
        self.detail = detail


class Broken(Exception):
    """An exchange broke on an open connection; how far it got is in its progress."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble = trouble
        self.detail = detail
