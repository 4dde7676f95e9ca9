"""Start a provider of one's own and ask its ledger: what the demo and the drills hold in hand."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig.ground import ROOT, leashed
from rig.provider.count import Count
from rig.provider.ledger import Arrival

SECRET = "whsec_" + "ZmVuY2Vwb3N0LWRlbW8tc2VjcmV0LTAxMjM0NTY3"  # of nothing but this rig


class LocalProvider:
    """A provider on a free port (of loopback). `url` is its root; an address is url/DOOR/BEHAVIOUR/TIMES/SUBJECT."""

    def __init__(
        self, folder: Path, *, seed: int = 0, tls: bool = False, address: str = "127.0.0.1"
    ) -> None:
        self._folder, self._seed, self._tls, self._address = folder, seed, tls, address
        self._started: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> str:
        command = [sys.executable, "-m", "rig.provider", "--folder", str(self._folder)]
        command += ["--address", self._address]
        command += ["--secret", SECRET, "--seed", str(self._seed), *(["--tls"] * self._tls)]
        self._started = subprocess.Popen(
            leashed(command, signal.SIGTERM, parent=str(os.getpid())),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._started.stdout is not None
        line = self._started.stdout.readline()
        if not line:
            raise RuntimeError(f"the provider did not start: {self._started.wait()}")
        self.url = json.loads(line)["url"]
        return self.url

    def stop(self) -> None:
        if self._started is not None:
            self._started.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._started.wait(5)
            self._started.kill()
            self._started.wait()
            assert self._started.stdout is not None
            self._started.stdout.close()

    def count(self) -> Count:
        return Count(**self._ask("GET", "/ledger"))

    def arrivals(self, since: int = 0) -> list[Arrival]:
        return [Arrival(**one) for one in self._ask("GET", f"/arrivals?since={since}")]

    def open_gate(self) -> int:
        """Answer all that wait at the gate; returns how many did."""
        return int(self._ask("POST", "/open-gate")["opened"])

    def deafen(self) -> int:
        """Let every idle connection die without a word."""
        return int(self._ask("POST", "/deafen")["deafened"])

    def close_idle(self) -> int:
        return int(self._ask("POST", "/close-idle")["closed"])

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        trust = None
        if self._tls:
            trust = ssl.create_default_context(cafile=str(self._folder / "ca.pem"))
        with urllib.request.urlopen(request, timeout=20, context=trust) as answer:
            return json.loads(answer.read())


@contextlib.contextmanager
def local_provider(
    folder: Path, *, seed: int = 0, tls: bool = False, address: str = "127.0.0.1"
) -> Iterator[LocalProvider]:
    provider = LocalProvider(folder, seed=seed, tls=tls, address=address)
    try:
        provider.start()
        yield provider
    finally:
        provider.stop()
