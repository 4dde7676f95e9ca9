"""Real Lambda runtimes without containers: aws-lambda-rie + awslambdaric, one execution environment each.

As on AWS: one invocation at a time, a warm interpreter between invocations, SIGKILL at the function's timeout.
Unlike AWS: the first invocation's timeout includes the start of the interpreter, and memory has no limit.
"""

import contextlib
import http.client
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig.emulator import Emulator, unavailable
from rig.ground import ROOT, children_of, state_of, wait_until
from rig.invoked import Invoked, read_answer

TASK_ROOT = ROOT / "functions" / "deliver"
LAYERS = (ROOT / "shared",)
HANDLER = "handler.handler"
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")
ANSWER_SECONDS = 30.0  # beyond the function's timeout: then the emulator itself is stuck
SIGNAL_SECONDS = 5.0

__all__ = ["Runtime", "RuntimeBusy", "unavailable"]


class RuntimeBusy(RuntimeError):
    """A second invocation while one runs; the emulator would panic, so it is never sent."""


class Runtime:
    """One execution environment. Start it from a thread that stays: it dies with that thread (see leash.py)."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        timeout_seconds: int,
        folder: Path | None = None,
        name: str = "deliver",
        handler: str = HANDLER,
        task_root: Path = TASK_ROOT,
        layers: tuple[Path, ...] = LAYERS,
        python: str = sys.executable,
    ) -> None:
        self.name = name
        self.timeout_seconds = timeout_seconds
        self._interpreter = [python, "-m", "awslambdaric", handler]
        self._task_root = task_root
        kept = {key: value for key, value in os.environ.items() if key in KEPT}
        self._environment = kept | self._lambda_environment(layers) | dict(environment)
        self._log = tempfile.NamedTemporaryFile(  # noqa: SIM115  (closed in `end`)
            "ab", dir=folder, prefix=f"fencepost-{name}-", suffix=".log", delete=False
        )
        self.log_path = Path(self._log.name)
        self._emulator: Emulator | None = None
        self._turn = threading.Lock()

    def start(self) -> Self:
        """Ready to be invoked when this returns; the interpreter itself starts at the first invocation."""
        self._emulator = Emulator(
            self._interpreter,
            folder=self._task_root,
            environment=self._environment,
            log=self._log.file,
        )
        return self

    def invoke(self, event: Mapping[str, Any]) -> Invoked:
        """Invoke and wait for the end. Raises RuntimeBusy while another invocation runs."""
        began = time.monotonic()
        with self.turn() as emulator:
            try:
                wait = self.timeout_seconds + ANSWER_SECONDS
                status, body = emulator.post(json.dumps(event).encode(), wait)
            except (OSError, http.client.HTTPException) as error:
                took = time.monotonic() - began
                return Invoked(died=True, error=f"emulator gone: {error!r}", took_seconds=took)
        return read_answer(status, body, time.monotonic() - began)

    @contextlib.contextmanager
    def turn(self) -> Iterator[Emulator]:
        """The emulator's one place. Raises RuntimeBusy while somebody has it."""
        if self._emulator is None:
            raise RuntimeError(f"{self.name} is not started")
        if not self._turn.acquire(blocking=False):
            raise RuntimeBusy(self.name)
        try:
            yield self._emulator
        finally:
            self._turn.release()

    def emulator_pid(self) -> int | None:
        return None if self._emulator is None else self._emulator.pid

    def pid(self) -> int | None:
        """The interpreter's number; None before the first invocation and after its death."""
        if self._emulator is None or not self._emulator.alive():
            return None
        return next((pid for pid in children_of(self._emulator.pid) if state_of(pid) != "Z"), None)

    def freeze(self) -> int:
        """SIGSTOP the interpreter, as a frozen sandbox; returns its number once it has really stopped."""
        return self._signal(signal.SIGSTOP, ("T", "Z", None))

    def thaw(self) -> None:
        """SIGCONT: it goes on where it was."""
        self._signal(signal.SIGCONT, ("R", "S", "D", "Z", None))

    def kill(self) -> int:
        """SIGKILL the interpreter in whatever it does; the next invocation starts a new one."""
        return self._signal(signal.SIGKILL, ("Z", None))

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def end(self) -> None:
        """End the emulator and its interpreter. Harmless twice."""
        if self._emulator is not None:
            self._emulator.end()
            self._emulator = None
        self._log.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _signal(self, number: signal.Signals, states: tuple[str | None, ...]) -> int:
        pid = self.pid()
        if pid is None:
            raise RuntimeError(f"{self.name}: no interpreter is running")
        os.kill(pid, number)
        wait_until(lambda: state_of(pid) in states, SIGNAL_SECONDS, f"{self.name} after {number}")
        return pid

    def _lambda_environment(self, layers: tuple[Path, ...]) -> dict[str, str]:
        return {
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(self.timeout_seconds),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            # python3.12 and later poll in a thread, as in the managed runtime
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "LAMBDA_TASK_ROOT": str(self._task_root),
            "PYTHONPATH": os.pathsep.join(map(str, (self._task_root, *layers))),
            "PYTHONUNBUFFERED": "1",
            "TZ": ":UTC",
        }
