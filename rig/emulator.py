"""AWS's runtime interface emulator as a child of ours: it starts the interpreter, keeps its time, and kills it.

Never ask it for help on its command line: it would start a server instead.
"""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from rig.ground import children_of, free_port, leashed

BINARY = Path(sys.executable).parent / "aws-lambda-rie"
INVOKE = "/2015-03-31/functions/function/invocations"
STARTS_MAX = 3  # a free port may be gone before the emulator takes it
LISTENS_SECONDS = 30.0


def unavailable() -> str | None:
    """Why no runtime can be started here, or None."""
    if sys.platform != "linux":
        return "the Lambda runtime interface emulator exists for Linux only"
    return None if BINARY.exists() else f"{BINARY} is missing (make setup fetches it)"


class Emulator:
    """One emulator around one interpreter command. Both die with the thread that started it (see leash.py)."""

    def __init__(
        self,
        interpreter: list[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: IO[bytes],
    ) -> None:
        for _ in range(STARTS_MAX):
            self._port, api_port = free_port(), free_port()
            self._started = subprocess.Popen(
                self._command(interpreter, api_port),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the demo alone, which ends all in order
            )
            if self._listens():
                return
            self.end()
        raise RuntimeError("the runtime interface emulator does not start")

    @property
    def pid(self) -> int:
        return self._started.pid

    def alive(self) -> bool:
        return self._started.poll() is None

    def post(self, body: bytes, timeout_seconds: float) -> tuple[int, bytes]:
        """Status and body. Never two at a time: it panics. Raises OSError or HTTPException when it dies."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout_seconds)
        with contextlib.closing(connection):
            connection.request("POST", INVOKE, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()

    def end(self) -> None:
        """SIGTERM makes it kill its interpreter; whatever is left then is killed by us. Harmless twice."""
        orphans = children_of(self.pid)
        self._started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._started.wait(3)
        self._started.kill()
        self._started.wait()
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _command(self, interpreter: list[str], api_port: int) -> list[str]:
        command = [
            str(BINARY),
            "--log-level=error",
            f"--runtime-interface-emulator-address=127.0.0.1:{self._port}",
            f"--runtime-api-address=127.0.0.1:{api_port}",
            *leashed(interpreter, signal.SIGKILL, parent="{leash}"),
        ]
        return leashed(command, signal.SIGTERM, parent=str(os.getpid()))

    def _listens(self) -> bool:
        end = time.monotonic() + LISTENS_SECONDS
        while time.monotonic() < end and self.alive():
            with contextlib.suppress(OSError):
                probe = http.client.HTTPConnection("127.0.0.1", self._port, timeout=1)
                probe.connect()
                probe.close()
                return True
            time.sleep(0.01)
        return False
