"""Fixtures for everybody: a real PostgreSQL, and in it a fresh migrated database for each test that asks."""

import itertools
import os
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fencepost.store.migrate import migrate
from rig.postgres import local_postgres

NUMBERS = itertools.count()

# A busy machine is no finding: no test asserts how long something took. A failure prints how to repeat it.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The server's maintenance database: DATABASE_URL, or an embedded server for this session."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    with local_postgres() as server:
        yield server.url


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that others are copied from."""
    name = f"fencepost_test_{os.getpid()}_template"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        with psycopg.connect(make_conninfo(server_url, dbname=name)) as connection:
            migrate(connection)
        yield name
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """A fresh migrated database of this test's own; dropped afterwards."""
    name = f"fencepost_test_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield make_conninfo(server_url, dbname=name)
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection, as the superuser, to this test's database."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened
