"""The servers that are measured, and databases in them: durable commits, nothing in the background."""

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.statement import statement
from fencepost.core.version import CODE_VERSION
from fencepost.store.migrate import migrate
from fencepost.store.operator import Operator
from rig.postgres import LocalPostgres, debian_binaries, embedded_binaries, local_postgres

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "32GB",  # no checkpoint inside a round: full-page images would be chance
    "checkpoint_timeout": "1h",
    "wal_init_zero": "off",  # in service files of WAL are used again; a new one is 16 MB of zeros to write
    "autovacuum": "off",  # each round vacuums and analyses by itself, before it is measured
}
INSTALLATION = "bench"
SECRET = "whsec_" + "YmVuY2gtc2VjcmV0LW9mLXR3ZW50eS1mb3VyLWI="
VERSION = CODE_VERSION
CHANNEL = {
    "name": "push",
    "sender": "webhook",
    "settings": {"allow_private_networks": True},
    "secret_reference": "env:BENCH_SECRET",
    "on_uncertain": "resend",
}
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server with a prepared template database."""

    local: LocalPostgres
    version: str
    template: str

    @property
    def pid(self) -> int:
        assert self.local.process is not None
        return self.local.process.pid

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """A database of one round's own: the product's schema and the plain one, empty."""
        name = f"bench_{next(NUMBERS)}"
        with psycopg.connect(self.local.url, autocommit=True) as admin:
            admin.execute(
                sql.SQL("create database {} template {}").format(
                    sql.Identifier(name), sql.Identifier(template or self.template)
                )
            )
        try:
            yield f"{self.local.url.rpartition('/')[0]}/{name}"  # a URL: not everybody reads conninfo
        finally:
            with psycopg.connect(self.local.url, autocommit=True) as admin:
                admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def available() -> dict[str, Path]:
    """The servers this machine has: the oldest supported if Debian brought it, and the embedded one."""
    found = {"15": debian_binaries(15), "18": embedded_binaries()}
    return {name: binaries for name, binaries in found.items() if binaries is not None}


@contextlib.contextmanager
def running(
    binaries: Path, *, core: int | None = None, settings: Mapping[str, str] = {}
) -> Iterator[Server]:
    """A server on the given binaries (on one core, if one is named), with settings over the bench's own."""
    with local_postgres(binaries=binaries, settings={**SETTINGS, **settings}) as local:
        if core is not None and local.process is not None:
            os.sched_setaffinity(local.process.pid, {core})
        with psycopg.connect(local.url, autocommit=True) as admin:
            version = admin.info.parameter_status("server_version") or "?"
            admin.execute("create database bench_template")
        prepare(make_conninfo(local.url, dbname="bench_template"))
        yield Server(local=local, version=version.split()[0], template="bench_template")


def prepare(url: str) -> None:
    """The product as an operator sets it up, and the plain tables beside it."""
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
        connection.execute(statement("plain_tables"))
    with Operator(url) as operator:
        operator.bind(INSTALLATION)
        operator.apply_channels([CHANNEL])
