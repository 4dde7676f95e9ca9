"""Programs that are measured together: each says it is ready, waits for the word, and tells what it did.

The language between us is a JSON object a line: `{"ready": true}` from it, `go` from us, then whatever it tells, the
last of it with `"done": true`; it ends when its standard input closes. Instants are seconds of CLOCK_MONOTONIC,
which all programs of one machine share.
"""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rig.ground import ROOT, leashed

PATIENCE_SECONDS = 600.0
FAREWELL_SECONDS = 20.0

Told = dict[str, Any]


class Crew:
    """Started together, ended together; they die with us whatever becomes of us."""

    def __init__(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> None:
        self._selector = selectors.DefaultSelector()
        self._members = [_started(command, environment) for command in commands]
        self._heard: list[bytes] = [b"" for _ in commands]
        for place, member in enumerate(self._members):
            assert member.stdout is not None
            self._selector.register(member.stdout, selectors.EVENT_READ, place)

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for member in self._members:
            assert member.stdin is not None
            member.stdin.close()
        for member in self._members:
            try:
                member.wait(FAREWELL_SECONDS if kind is None else 1)
            except subprocess.TimeoutExpired:
                member.kill()
                member.wait()
        self._selector.close()

    def await_ready(self) -> None:
        waiting = len(self._members)
        while waiting:
            waiting -= sum("ready" in told for _, told in self.listen())

    def say(self, word: str) -> None:
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write(word.encode() + b"\n")
            member.stdin.flush()

    def results(self) -> list[Told]:
        """The last word of each, in their order."""
        last: dict[int, Told] = {}
        while len(last) < len(self._members):
            last.update({place: told for place, told in self.listen() if "done" in told})
        return [last[place] for place in range(len(self._members))]

    def listen(self) -> list[tuple[int, Told]]:
        """What was told since, waiting for at least one line of somebody."""
        end = time.monotonic() + PATIENCE_SECONDS
        told: list[tuple[int, Told]] = []
        while not told:
            ready = self._selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"nothing was heard for {PATIENCE_SECONDS:g} s")
            for key, _ in ready:
                told += [(key.data, line) for line in self._lines(key.data, key.fd)]
        return told

    def _lines(self, place: int, descriptor: int) -> list[Told]:
        data = os.read(descriptor, 65536)
        if not data:
            raise RuntimeError(f"{self._members[place].args!r} ended before it was done")
        *lines, self._heard[place] = (self._heard[place] + data).split(b"\n")
        return [json.loads(line) for line in lines if line.startswith(b"{")]


def _started(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        leashed(list(command), signal.SIGKILL, parent=str(os.getpid())),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
