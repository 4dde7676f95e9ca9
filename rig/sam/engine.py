"""The docker engine `sam local` runs on: the one that is running, else Debian's, started by hand and ended again."""

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rig.ground import leashed, wait_until
from rig.sam.debian import install

STARTER = Path(__file__).parent / "dockerd.sh"
ENGINE_STARTS_SECONDS = 60.0
BRIDGE = "docker0"
HOST_NAME = "host.docker.internal"  # what Docker Desktop calls the host, and so do we everywhere


class NoEngine(RuntimeError):
    """No docker engine is running and none can be started: one sentence that says what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine that answers. `address` is this machine as its containers reach it, and where to listen for them."""

    environment: Mapping[str, str]  # for docker and for SAM
    version: str
    own: bool  # started by us
    address: str
    subnet: str | None  # where containers come from; None: from loopback (Docker Desktop)

    def docker(self, *arguments: str, seconds: float = 60) -> str:
        """What the docker command printed. Raises RuntimeError with what it complained of."""
        done = subprocess.run(
            ["docker", *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if done.returncode:
            raise RuntimeError(f"docker {arguments[0]}: {done.stderr.strip()[-400:]}")
        return done.stdout.strip()

    @property
    def add_host(self) -> list[str]:
        """The option that gives the host its name; Docker Desktop has given it already."""
        return ["--add-host", f"{HOST_NAME}:{self.address}"] if self.subnet else []


@contextlib.contextmanager
def docker_engine(cache: Path) -> Iterator[Engine]:
    """A running engine is used as it is. One of our own keeps its images in `cache` and ends with us."""
    if shutil.which("docker") and (engine := _running({"DOCKER_HOST": _endpoint()}, own=False)):
        yield engine
        return
    _can_start_one()
    install({"dockerd": "docker.io", "docker": "docker.io", "ip": "iproute2"})
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-docker-") as folder,
        _started(cache / "engine", Path(folder)) as engine,
    ):
        yield engine


def _endpoint() -> str:
    """Where the docker command's engine is: SAM does not know its contexts."""
    if given := os.environ.get("DOCKER_HOST"):
        return given
    shown = subprocess.run(
        ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"],
        capture_output=True,
        text=True,
    )
    return shown.stdout.strip() or "unix:///var/run/docker.sock"


def _can_start_one() -> None:
    if not shutil.which("apt-get"):
        raise NoEngine("no docker engine is running here: start Docker (Desktop, colima, …)")
    if os.geteuid() != 0:
        raise NoEngine("no docker engine is running here: start one, or run this as root")


@contextlib.contextmanager
def _started(data: Path, folder: Path) -> Iterator[Engine]:
    bridge_before = _bridge_exists()
    command = ["bash", str(STARTER), str(data), str(folder)]
    started = subprocess.Popen(
        leashed(command, signal.SIGTERM, parent=str(os.getpid())),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    environment = {"DOCKER_HOST": f"unix://{folder}/docker.sock"}
    try:
        wait_until(
            lambda: started.poll() is not None or _running(environment, own=True) is not None,
            ENGINE_STARTS_SECONDS,
            "the docker engine",
        )
        engine = _running(environment, own=True)
        if engine is None:
            raise NoEngine(f"dockerd does not start: {_last_line(folder / 'log')}")
        yield engine
    finally:
        started.terminate()
        started.wait(60)
        if not bridge_before:
            subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True)


def _running(environment: Mapping[str, str], *, own: bool) -> Engine | None:
    """The engine at that endpoint, once it answers."""
    asked = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if asked.returncode or not asked.stdout.strip():
        return None
    address, subnet = _gateway(environment)
    version = asked.stdout.strip()
    return Engine(environment=environment, version=version, own=own, address=address, subnet=subnet)


def _gateway(environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The bridge's gateway where it is an address of this machine; else the engine has a machine of its own, which
    passes connections on to loopback."""
    shown = subprocess.run(
        ["docker", "network", "inspect", "bridge", "--format", "{{json .IPAM.Config}}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    for one in json.loads(shown.stdout or "null") or []:
        subnet = ipaddress.ip_network(one["Subnet"])
        gateway = one.get("Gateway") or str(next(subnet.hosts()))  # of a new bridge it is not told
        if _ours(gateway):
            return gateway, str(subnet)
    return "127.0.0.1", None


def _ours(address: str) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return bool(address)


def _bridge_exists() -> bool:
    return Path("/sys/class/net", BRIDGE).exists()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
