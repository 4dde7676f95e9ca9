"""SIGINT and SIGTERM as a wish: the run ends as at its deadline, with nothing leased. A second one cuts it off."""

import os
import select
import signal
import time
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """A monotonic clock that a signal puts forward to the instant after which nothing new may start.

    A clock that is ahead errs on the safe side: leases look shorter than they are, and what is being sent keeps its
    own timeout. Signals reach the process only between `with` and its end.
    """

    def __init__(self) -> None:
        self.asked = False
        self._leap = 0.0
        self._stop_claiming: float | None = None
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

    def clock(self) -> float:
        return time.monotonic() + self._leap

    def run_begins(self, *, stop_claiming_in_seconds: float) -> None:
        """From now on a signal puts the clock forward to that instant."""
        self._stop_claiming = self.clock() + stop_claiming_in_seconds
        if self.asked:
            self._hurry()

    def wait(self, seconds: float) -> None:
        """So long, or until a signal comes."""
        if not self.asked and seconds > 0:
            select.select([self._woken], [], [], seconds)

    def _wish(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        os.write(self._wake, b"!")
        self._hurry()

    def _hurry(self) -> None:
        if self._stop_claiming is not None:
            self._leap += max(0.0, self._stop_claiming - self.clock())
