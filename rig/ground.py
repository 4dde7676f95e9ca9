"""The ground the rig stands on: ports, other people's numbers in /proc, leashes, waiting for what can be observed."""

import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEASH = Path(__file__).resolve().parent / "leash.py"
POLL_SECONDS = 0.02
PATIENCE = 4  # a wait that passes never lasts that long; a busy machine is no fault of the code


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def leashed(command: list[str], number: signal.Signals, *, parent: str) -> list[str]:
    """The command tied to its parent (Linux; elsewhere as it is)."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", str(LEASH), parent, str(int(number)), *command]


def state_of(pid: int) -> str | None:
    """One letter (R, S, T stopped, Z dead and not yet collected, …); None: there is no such one."""
    fields = _stat(pid)
    return fields[0] if fields else None


def children_of(pid: int) -> list[int]:
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [one for one in numbers if (fields := _stat(one)) and int(fields[1]) == pid]


def wait_until(seen: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something can be observed: `seconds` on an idle machine, PATIENCE times that on any; TimeoutError."""
    end = time.monotonic() + seconds * PATIENCE
    while not seen():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds * PATIENCE:g} s for {what}")
        time.sleep(POLL_SECONDS)


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on (the name before it may hold anything)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
