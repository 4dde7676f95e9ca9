"""SIGINT and SIGTERM as a wish, granted between two runs. A second one cuts off what is under way."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Between `with` and its end the first signal is only noted; `wait` returns at once then."""

    def __init__(self) -> None:
        self._asked = False
        self._woken, self._wake = os.pipe()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._wish) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._wake)

    def asked(self) -> bool:
        return self._asked

    def wait(self, seconds: float) -> None:
        """So long, or until a signal comes: through a pipe, so that one that comes just before is not missed."""
        if seconds > 0:
            select.select([self._woken], [], [], seconds)

    def _wish(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        os.write(self._wake, b"!")
