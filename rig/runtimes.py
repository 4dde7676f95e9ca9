"""Real Lambda runtimes without containers: aws-lambda-rie + awslambdaric, one execution environment each.

As on AWS: one invocation at a time, a warm interpreter between invocations, SIGKILL at the function's timeout.
Unlike AWS: the first invocation's timeout includes the start of the interpreter, and memory has no limit.
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig.ground import ROOT, children_of, free_port, leashed, state_of, wait_until
from rig.invoked import Invoked, read_answer

EMULATOR = Path(sys.executable).parent / "aws-lambda-rie"
TASK_ROOT = ROOT / "functions" / "deliver"
LAYERS = (ROOT / "shared",)
HANDLER = "handler.handler"
INVOKE = "/2015-03-31/functions/function/invocations"
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")


class RuntimeBusy(RuntimeError):
    """A second invocation while one runs; the emulator would panic, so it is never sent."""


def unavailable() -> str | None:
    """Why no runtime can be started here, or None."""
    if sys.platform != "linux":
        return "the Lambda runtime interface emulator exists for Linux only"
    return None if EMULATOR.exists() else f"{EMULATOR} is missing (make setup fetches it)"


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
    ) -> None:
        self.name, self.timeout_seconds, self.handler, self.task_root = (
            name,
            timeout_seconds,
            handler,
            task_root,
        )
        kept = {key: value for key, value in os.environ.items() if key in KEPT}
        self._environment = kept | self._lambda_environment(layers) | dict(environment)
        folder = folder or Path(tempfile.gettempdir())
        self._log = tempfile.NamedTemporaryFile(  # noqa: SIM115  (closed in `end`)
            "ab", dir=folder, prefix=f"fencepost-{name}-", suffix=".log", delete=False
        )
        self.log_path = Path(self._log.name)
        self._emulator: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def start(self) -> Self:
        """Ready to be invoked when this returns; the interpreter itself starts at the first invocation."""
        for _ in range(3):  # a free port may be gone before the emulator takes it
            if self._start_emulator():
                return self
        raise RuntimeError(f"the runtime emulator did not start: {self.log()[-2000:]}")

    def invoke(self, event: Mapping[str, Any]) -> Invoked:
        """Invoke and wait for the end. Raises RuntimeBusy while another invocation runs."""
        began = time.monotonic()
        with self.turn():
            try:
                status, body = self._post(json.dumps(event).encode())
            except (OSError, http.client.HTTPException) as error:
                took = time.monotonic() - began
                return Invoked(died=True, error=f"emulator gone: {error!r}", took_seconds=took)
        return read_answer(status, body, time.monotonic() - began)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """The emulator's one place. Raises RuntimeBusy while somebody has it."""
        if not self._turn.acquire(blocking=False):
            raise RuntimeBusy(self.name)
        try:
            yield
        finally:
            self._turn.release()

    def emulator_pid(self) -> int | None:
        return None if self._emulator is None else self._emulator.pid

    def pid(self) -> int | None:
        """The interpreter's number; None before the first invocation and after its death."""
        if self._emulator is None or self._emulator.poll() is not None:
            return None
        return next((pid for pid in children_of(self._emulator.pid) if state_of(pid) != "Z"), None)

    def freeze(self) -> int:
        """SIGSTOP the interpreter, as a frozen sandbox; returns its number once it has really stopped."""
        pid = self._signal(signal.SIGSTOP)
        wait_until(lambda: state_of(pid) in ("T", None), 5, "the runtime to freeze")
        return pid

    def thaw(self) -> None:
        """SIGCONT: it goes on where it was."""
        self._signal(signal.SIGCONT)

    def kill(self) -> int:
        """SIGKILL the interpreter in whatever it does; the next invocation starts a new one."""
        pid = self._signal(signal.SIGKILL)
        wait_until(lambda: state_of(pid) in ("Z", None), 5, "the runtime to die")
        return pid

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def end(self) -> None:
        """End the emulator and its interpreter (SIGTERM makes the emulator kill it). Harmless twice."""
        if self._emulator is not None:
            orphans = children_of(self._emulator.pid)
            self._emulator.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._emulator.wait(3)
            self._emulator.kill()
            self._emulator.wait()
            for (
                pid
            ) in orphans:  # frozen ones do not answer SIGTERM; the leash has usually taken them
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
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

    def _signal(self, number: signal.Signals) -> int:
        pid = self.pid()
        if pid is None:
            raise RuntimeError(f"{self.name}: no interpreter is running")
        os.kill(pid, number)
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
            "LAMBDA_TASK_ROOT": str(self.task_root),
            "PYTHONPATH": os.pathsep.join(map(str, (self.task_root, *layers))),
            "PYTHONUNBUFFERED": "1",
            "TZ": ":UTC",
        }

    def _start_emulator(self) -> bool:
        self._port, api_port = free_port(), free_port()
        runtime = [sys.executable, "-m", "awslambdaric", self.handler]
        command = [
            str(EMULATOR),
            "--log-level=error",
            f"--runtime-interface-emulator-address=127.0.0.1:{self._port}",
            f"--runtime-api-address=127.0.0.1:{api_port}",
            *leashed(runtime, signal.SIGKILL, parent="{leash}"),
        ]
        self._emulator = subprocess.Popen(
            leashed(command, signal.SIGTERM, parent=str(os.getpid())),
            cwd=self.task_root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the demo alone, which ends everything in order
        )
        return self._listening()

    def _listening(self) -> bool:
        assert self._emulator is not None
        for _ in range(500):
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=1)
                connection.connect()
                connection.close()
                return True
            if self._emulator.poll() is not None:
                return False
            time.sleep(0.01)
        return False

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=self.timeout_seconds + 30
        )
        with contextlib.closing(connection):
            connection.request("POST", INVOKE, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
