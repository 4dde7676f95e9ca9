"""A channel of the kind `ses`: its settings."""

from email.utils import parseaddr
from typing import Annotated

import msgspec

from fencepost.senders.pattern import like

# As SES takes them: API v2, MessageHeader and MessageTag.
HeaderName = Annotated[
    str, like(r"^[!-9;-@A-~]{1,126}$", "1 to 126 ASCII characters without spaces and colons")
]
HeaderValue = Annotated[str, like(r"^[ -~]{1,870}$", "1 to 870 ASCII characters on one line")]
TagText = Annotated[str, like(r"^[A-Za-z0-9_-]{1,256}$", "1 to 256 ASCII letters, digits, _ or -")]
Named = Annotated[str, msgspec.Meta(min_length=1)]

HEADERS_MAX = 15
OWN_TAGS_PREFIX = "fencepost-"


class SesSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Raises ValueError (as msgspec does) for what SES would refuse of every mail."""

    from_address: Named  # "Shop <orders@shop.example>", of a verified identity
    region: Named | None = None
    endpoint: Named | None = None
    from_identity_arn: Named | None = None  # of another account that lets us send as it
    reply_to: tuple[Named, ...] = ()
    configuration_set: Named | None = None  # without one there are no events
    # So long after a send its first event may be under way, from SES to where evidence is told.
    events_within_seconds: Annotated[float, msgspec.Meta(gt=0)] = 900.0
    contact_list: Named | None = None  # SES adds List-Unsubscribe for it
    contact_topic: Named | None = None
    headers: Annotated[dict[HeaderName, HeaderValue], msgspec.Meta(max_length=HEADERS_MAX)] = {}
    tags: dict[TagText, TagText] = {}

    def __post_init__(self) -> None:
        for text in (self.from_address, *self.reply_to):
            address = parseaddr(text)[1]
            if "@" not in address or not address.isascii() or "\n" in text or "\r" in text:
                raise ValueError(
                    "from_address and reply_to are ASCII mail addresses, with or without a name"
                )
        if self.contact_topic and not self.contact_list:
            raise ValueError("contact_topic is a topic of contact_list, which is not set")
        if any(name.startswith(OWN_TAGS_PREFIX) for name in self.tags):
            raise ValueError(f"tags that begin with {OWN_TAGS_PREFIX} are the sender's own")
