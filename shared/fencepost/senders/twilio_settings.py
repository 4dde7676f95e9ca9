"""The settings of a Twilio channel."""

from typing import Annotated

import msgspec

from fencepost.senders.pattern import like
from fencepost.senders.request import read_url

Sid = Annotated[
    str, like(r"^[A-Z]{2}[0-9a-fA-F]{32}$", "two capital letters and 32 hexadecimal digits")
]


class TwilioSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Twilio channel's settings. One of `from` and `messaging_service_sid` says who sends."""

    account_sid: Sid
    from_: str | None = msgspec.field(default=None, name="from")
    messaging_service_sid: Sid | None = None
    status_callback: str | None = None
    endpoint: str = "https://api.twilio.com"
    list_pages: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5
    # So long after the latest doubtful attempt a message that Twilio does not list will not come any more.
    settled_after_seconds: Annotated[float, msgspec.Meta(ge=0)] = 120.0

    def __post_init__(self) -> None:
        if (self.from_ is None) == (self.messaging_service_sid is None):
            raise ValueError("one of from and messaging_service_sid says who sends")
        if self.status_callback is not None:
            read_url(self.status_callback)

    @property
    def sender(self) -> dict[str, str]:
        if self.messaging_service_sid is not None:
            return {"MessagingServiceSid": self.messaging_service_sid}
        return {"From": self.from_ or ""}
