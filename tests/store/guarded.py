"""A server that asks who is there: passwords for the worker's role, and TLS where a test wants it."""

import contextlib
import itertools
import os
import pwd
import signal
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
import trustme
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fencepost.store.migrate import migrate
from rig.postgres import LocalPostgres, debian_binaries
from tests.store.session import until

ROLE = "fencepost_worker"
HOST = "db.fencepost.test"
PASSWORD = "first-hunter2"
HBA = """\
local all all trust
host all postgres 127.0.0.1/32 trust
{transport} all all 127.0.0.1/32 {method}
"""
LOGIN = f"connection authorized: user={ROLE}"
BACKENDS = "select pid from pg_stat_activity where usename = %s and backend_type = 'client backend'"
NUMBERS = itertools.count()


@dataclass
class Guarded:
    """The server, its superuser, and how the worker's role gets in."""

    server: LocalPostgres
    authority: trustme.CA | None
    folder: Path
    ca_file: str | None = None
    admin: psycopg.Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        self.admin = psycopg.connect(self.server.url, autocommit=True)

    def database(self) -> str:
        """A fresh migrated database, by its name."""
        name = f"guarded_{next(NUMBERS)}"
        create = sql.SQL("create database {} template migrated")
        self.admin.execute(create.format(sql.Identifier(name)))
        return name

    def url(self, **changes: str | int) -> str:
        """The worker's way in; with TLS the name in the certificate, which no resolver knows."""
        named = {"host": HOST, "hostaddr": "127.0.0.1"} if self.authority else {"host": "127.0.0.1"}
        plain: dict[str, str | int] = {
            "port": self.server.port,
            "user": ROLE,
            "dbname": "migrated",
            **named,
        }
        return make_conninfo("", **{**plain, **changes})

    def password(self, password: str) -> None:
        """What the server takes from now on."""
        alter = sql.SQL("alter role {} password {}")
        self.admin.execute(alter.format(sql.Identifier(ROLE), sql.Literal(password)))

    def setting(self, name: str, value: str | None) -> None:
        """For every session: those that are open, and those that come. None: as it was."""
        self._written(name, value)
        self.admin.execute("select pg_reload_conf()")
        expected = value or self.started_with(name)
        until(lambda: self.seen_by_a_new_session(name) == expected, f"{name} is {expected}")
        self._read_again(self.backends())

    def setting_of(self, pid: int, name: str, value: str) -> None:
        """For one open session from its next statement on; no other hears of it. Undone by `setting(name, None)`."""
        self._written(name, value)
        self._read_again([pid])

    def seen_by_a_new_session(self, name: str) -> str:
        with psycopg.connect(self.server.url) as session:
            return str((session.execute(f"show {name}".encode()).fetchone() or ("",))[0])

    def started_with(self, name: str) -> str:
        query = b"select boot_val from pg_settings where name = %s"
        return str((self.admin.execute(query, [name]).fetchone() or ("",))[0])

    def _written(self, name: str, value: str | None) -> None:
        words = sql.SQL("alter system {} {}").format(
            sql.SQL("reset" if value is None else "set"), sql.Identifier(name)
        )
        if value is not None:
            words += sql.SQL(" = {}").format(sql.Literal(value))
        self.admin.execute(words)

    def _read_again(self, pids: list[int]) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGHUP)

    def backends(self) -> list[int]:
        return [pid for (pid,) in self.admin.execute(BACKENDS, [ROLE]).fetchall()]

    def end_backends(self) -> int:
        """57P01 for every session of the worker's; how many there were."""
        ended = [
            self.admin.execute("select pg_terminate_backend(%s, 5000)", [pid]).fetchone()
            for pid in self.backends()
        ]
        assert all(ended)
        return len(ended)

    def logins(self) -> int:
        """How often the worker's role was let in."""
        return self.log().count(LOGIN)

    def log(self) -> str:
        return (self.server.folder / "postgres.log").read_text(errors="replace")


@contextlib.contextmanager
def guarded_postgres(
    *, tls: bool = False, method: str = "scram-sha-256", settings: Mapping[str, str] = {}
) -> Iterator[Guarded]:
    """A throwaway server with a migrated database. With TLS it takes no connection without, but its superuser's."""
    if tls and debian_binaries() is None:
        pytest.skip("no PostgreSQL with TLS here (apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="fencepost-guarded-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        authority = trustme.CA() if tls else None
        more = {"log_connections": "on", "hba_file": str(folder / "hba.conf"), **settings}
        more |= _certified(authority, folder) if authority else {}
        transport = "hostssl" if tls else "host"
        (folder / "hba.conf").write_text(HBA.format(transport=transport, method=method))
        server = LocalPostgres(folder, binaries=debian_binaries() if tls else None, settings=more)
        try:
            server.start()
            with psycopg.connect(server.url, autocommit=True) as first:
                first.execute("create database migrated")
            with psycopg.connect(make_conninfo(server.url, dbname="migrated")) as connection:
                migrate(connection)
            guarded = Guarded(server, authority, folder)
            guarded.ca_file = str(folder / "ca.pem") if tls else None
            guarded.password(PASSWORD)
            yield guarded
            guarded.admin.close()
        finally:
            server.stop(signal.SIGQUIT)  # nothing of it is wanted any more


def _certified(authority: trustme.CA, folder: Path) -> dict[str, str]:
    """A certificate for `HOST`, a key that only the server's user may read, and the CA's file for clients."""
    issued = authority.issue_cert(HOST)
    chain, key = folder / "server.pem", folder / "server.key"
    chain.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    key.chmod(0o600)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody").pw_uid
        os.chown(key, nobody, nobody)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return {"ssl": "on", "ssl_cert_file": str(chain), "ssl_key_file": str(key)}
