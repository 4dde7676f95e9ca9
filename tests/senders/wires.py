"""A connection without a socket."""

from collections.abc import Callable

from httpunk.types import Response

from fencepost.senders.progress import Progress
from fencepost.senders.request import Origin, Request


class FakeWire:
    """Implements `Wire` for those who only keep connections."""

    def __init__(self, *, room: int = 1) -> None:
        self.origin = Origin(scheme="https", host="nobody.test", port=443)
        self.in_flight = 0
        self.idle_since = 0.0
        self.room = room
        self.patient = False
        self.usable = True
        self.aborted = False
        self.closed = False

    async def start(self) -> None: ...

    async def exchange(self, request: Request, progress: Progress) -> Response:
        raise NotImplementedError

    async def read(self, response: Response, take: Callable[[bytes], None]) -> None:
        raise NotImplementedError

    def retire(self) -> None:
        self.usable = False

    def abort(self) -> None:
        self.usable = False
        self.aborted = True

    async def close(self) -> None:
        self.closed = True
