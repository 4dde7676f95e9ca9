"""`fencepost migrate` on a database that has never seen it."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.cli.conftest import call

pytestmark = pytest.mark.postgres


@pytest.fixture
def bare_url(server_url: str) -> Iterator[str]:
    """An empty database; dropped afterwards."""
    name = f"fencepost_test_{os.getpid()}_bare"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        yield make_conninfo(server_url, dbname=name)
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def test_check_dry_run_and_migrate(bare_url: str) -> None:
    check = call(bare_url, "migrate", "--check")
    assert check.code == 4
    assert "001_tables: pending\n" in check.out
    dry = call(bare_url, "migrate", "--dry-run")
    assert (dry.code, dry.out.splitlines()[0]) == (0, "would apply 001_tables")
    assert call(bare_url, "migrate", "--check").code == 4, "a dry run applied something"
    done = call(bare_url, "migrate", "--json").json
    assert done["applied"][0] == "001_tables"
    assert done["boundary_missing"] == []
    assert call(bare_url, "migrate", "--check").code == 0
    assert call(bare_url, "migrate").out == "up to date\n"


def test_a_changed_file_is_told_and_nothing_is_applied(bare_url: str) -> None:
    assert call(bare_url, "migrate").code == 0
    with psycopg.connect(bare_url, autocommit=True) as admin:
        admin.execute("update fencepost.migration set sha256 = 'x' where file = '030_operators'")
    said = call(bare_url, "migrate", "--check")
    assert (said.code, said.out) == (4, "030_operators: changed\n")
    for words in ((), ("--dry-run",), ("--json",)):
        said = call(bare_url, "migrate", *words)
        assert (said.code, said.out, said.err.count("\n")) == (4, "", 1), words
        assert "030_operators" in said.err


def test_what_the_boundary_lacks_is_said_by_both_in_the_same_words(bare_url: str) -> None:
    assert call(bare_url, "migrate").code == 0
    with psycopg.connect(bare_url, autocommit=True) as admin:
        name = sql.Identifier(admin.info.dbname)
        reset = "alter role fencepost_worker in database {} reset all"
        admin.execute(sql.SQL(reset).format(name))
        elsewhere = sql.Identifier(f"elsewhere_{os.getpid()}")
        admin.execute(sql.SQL("create role {} login superuser").format(elsewhere))
        try:
            admin.execute(sql.SQL("alter schema fencepost owner to {}").format(elsewhere))
            check = call(bare_url, "migrate", "--check")
            assert call(bare_url, "migrate", "--check", "--json").json["boundary_missing"]
            done = call(bare_url, "migrate")
        finally:
            admin.execute("alter schema fencepost owner to fencepost_owner")
            admin.execute(sql.SQL("drop owned by {}").format(elsewhere))
            admin.execute(sql.SQL("drop role {}").format(elsewhere))
    first, *lines = check.out.splitlines()
    assert (check.code, first) == (0, "up to date")
    assert any(line.startswith("boundary: role fencepost_worker has no") for line in lines)
    owner = [line for line in lines if "the schema belongs to elsewhere_" in line]
    assert len(owner) == 1
    assert done.out.splitlines() == ["up to date", *owner], "migrate put the timeouts right"


def test_a_database_newer_than_the_code_is_left_alone(bare_url: str) -> None:
    assert call(bare_url, "migrate").code == 0
    with psycopg.connect(bare_url, autocommit=True) as admin:
        admin.execute(
            "insert into fencepost.migration (file, sha256, code_version) values ('999_new', 'x', 99)"
        )
    said = call(bare_url, "migrate")
    assert said.code == 4
    assert said.err.count("\n") == 1


def test_check_and_dry_run_exclude_each_other(bare_url: str) -> None:
    assert call(bare_url, "migrate", "--check", "--dry-run").code == 2
