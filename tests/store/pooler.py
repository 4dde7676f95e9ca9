"""A PgBouncer in transaction mode, as RDS Proxy and hosted poolers are: sessions are shared, transactions are not."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CONFIGURATION = """\
[databases]
* = {target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {size}
"""
OPEN_DOOR = {"auth_type": "any", "max_client_conn": "50"}


@contextlib.contextmanager
def pooler(
    server_url: str, *, size: int, port: int | None = None, settings: Mapping[str, str] = OPEN_DOOR
) -> Iterator[str]:
    """The URL of a pooler before the server, with at most `size` server connections a database."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer here (apt-get install pgbouncer)")
    parts = conninfo_to_dict(server_url)
    keys = ("host", "port", "user", "password")
    target = " ".join(f"{key}={parts[key]}" for key in keys if parts.get(key))
    with tempfile.TemporaryDirectory(prefix="fencepost-pooler-") as name, free_port() as free:
        folder = Path(name)
        folder.chmod(0o755)
        file = folder / "pgbouncer.ini"
        text = CONFIGURATION.format(target=target, port=port or free, size=size)
        file.write_text(text + "".join(f"{name} = {value}\n" for name, value in settings.items()))
        process = subprocess.Popen(
            [program, "-q", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None,
        )
        try:
            url = make_conninfo(server_url, host="127.0.0.1", port=port or free)
            await_ready(port or free, process)
            yield url
        finally:
            process.terminate()
            process.wait(120)


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    yield port


def await_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until it takes connections, whoever they may be of."""
    for _ in range(5000):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise RuntimeError("pgbouncer did not become ready")
