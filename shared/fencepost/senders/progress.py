"""How far one send has got. Written by whoever moves it on, read when it ends, however it ends."""

from fencepost.core.reply import Phase, Reply
from fencepost.senders.trouble import Trouble


class Progress:
    """Mutable, one a send."""

    def __init__(self) -> None:
        self.phase = Phase.NOT_SENT
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    @property
    def asked(self) -> bool:
        """Whether an answer may be under way."""
        return self.phase is not Phase.NOT_SENT

    def left(self) -> None:
        """A byte of the request is leaving."""
        if self.phase is Phase.NOT_SENT:  # an early answer stands while the rest still leaves
            self.phase = Phase.UNCERTAIN

    def refused(self) -> None:
        """The peer says, in a way the protocol defines, that it did not process the request."""
        self.phase = Phase.NOT_SENT

    def answered(self, status: int, headers: dict[str, str]) -> None:
        self.phase = Phase.ANSWERED
        self.status = status
        self.headers = headers

    def reply(self, trouble: Trouble | None, detail: str, took_seconds: float) -> Reply:
        return Reply(
            phase=self.phase,
            status=self.status,
            headers=self.headers,
            body=bytes(self.body),
            reason="" if trouble is None else trouble.value,
            error=detail,
            took_seconds=took_seconds,
        )
