"""Migrations: once each, whole or not at all, by whoever, however many start at once."""

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fencepost.store import migrate as migration
from fencepost.store.migrate import (
    DatabaseNewer,
    FileChanged,
    MigrationBusy,
    MigrationFailed,
    ServerUnsuitable,
    State,
    check,
    migrate,
    pending,
)
from fencepost.store.migration import Server, unsuitable

pytestmark = pytest.mark.postgres
NUMBERS = itertools.count()
NAMES = sorted(file.stem for file in migration.SCHEMA.glob("[0-9]*.sql"))
GOOD = Server(150018, "15.18", "read committed", False, "UTF8", "app")


@pytest.fixture
def make_database(server_url: str) -> Iterator[Callable[..., str]]:
    """Empty databases, dropped afterwards."""
    made: list[str] = []
    with psycopg.connect(server_url, autocommit=True) as admin:

        def make(options: str = "") -> str:
            name = f"fencepost_migrate_{os.getpid()}_{next(NUMBERS)}"
            statement = sql.SQL("create database {} template template0 " + options)
            admin.execute(statement.format(sql.Identifier(name)))
            made.append(name)
            return make_conninfo(server_url, dbname=name)

        yield make
        for name in made:
            admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def empty_url(make_database: Callable[..., str]) -> str:
    return make_database()


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """A copy of the schema's files, to add to."""
    return Path(shutil.copytree(migration.SCHEMA, tmp_path / "schema"))


def test_an_empty_database_gets_every_file_once_and_in_order(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        assert [found.state for found in check(connection)] == [State.PENDING] * len(NAMES)
        assert migrate(connection) == NAMES
        assert migrate(connection) == []
        assert pending(connection) == []
        assert {found.state for found in check(connection)} == {State.APPLIED}


def test_a_dry_run_names_what_would_come_and_writes_nothing(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        assert migrate(connection, dry_run=True) == NAMES
        assert connection.execute("select to_regnamespace('fencepost')").fetchone() == (None,)


def test_the_numbers_of_the_files_are_unique() -> None:
    numbers = [name[:3] for name in NAMES]
    assert len(set(numbers)) == len(numbers)


def test_two_that_start_at_once_share_the_work_and_both_succeed(empty_url: str) -> None:
    together = threading.Barrier(2)

    def one(_: int) -> list[str]:
        with psycopg.connect(empty_url) as connection:
            together.wait(120)
            return migrate(connection)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert sorted(first + second) == NAMES
    with psycopg.connect(empty_url) as connection:
        assert pending(connection) == []


def test_a_file_that_fails_leaves_nothing_of_itself_and_keeps_what_came_before(
    empty_url: str, schema: Path
) -> None:
    (schema / "500_half.sql").write_text("create table fencepost.half ();\nselect 1 / 0;")
    (schema / "501_after.sql").write_text("create table fencepost.after ();")
    with psycopg.connect(empty_url, autocommit=True) as connection:
        with pytest.raises(MigrationFailed, match=r"^500_half: division by zero$"):
            migrate(connection, schema=schema)
        names = [found.name for found in pending(connection, schema=schema)]
        assert names == ["500_half", "501_after"]
        assert connection.execute("select to_regclass('fencepost.half')").fetchone() == (None,)
        assert connection.execute("select to_regclass('fencepost.queue')").fetchone() != (None,)


def test_a_database_that_knows_more_than_this_code_is_refused(empty_url: str, schema: Path) -> None:
    (schema / "900_later.sql").write_text("select 1")
    with psycopg.connect(empty_url) as connection:
        migrate(connection, schema=schema)
        for refused in (lambda: migrate(connection), lambda: pending(connection)):
            with pytest.raises(DatabaseNewer, match="900_later"):
                refused()
        states = {found.name: found.state for found in check(connection)}
        assert states["900_later"] is State.UNKNOWN


def test_a_file_edited_after_it_was_applied_stops_everything(empty_url: str, schema: Path) -> None:
    with psycopg.connect(empty_url) as connection:
        migrate(connection, schema=schema)
        with (schema / "001_tables.sql").open("a") as file:
            file.write("\n-- another word\n")
        states = {found.name: found.state for found in check(connection, schema=schema)}
        assert states.pop("001_tables") is State.CHANGED
        assert set(states.values()) == {State.APPLIED}
        (schema / "500_next.sql").write_text("create table fencepost.next ();")
        for dry_run in (True, False):
            with pytest.raises(FileChanged, match=r"^edited after it .* here: 001_tables; [^\n]*$"):
                migrate(connection, schema=schema, dry_run=dry_run)
        assert connection.execute("select to_regclass('fencepost.next')").fetchone() == (None,)


def test_a_file_never_queues_behind_traffic_for_long(empty_url: str, schema: Path) -> None:
    (schema / "500_wide.sql").write_text("alter table fencepost.channel add column extra int;")
    with psycopg.connect(empty_url) as connection, psycopg.connect(empty_url) as traffic:
        migrate(connection)
        traffic.execute("select * from fencepost.channel")  # and stays in its transaction
        with pytest.raises(MigrationBusy, match="500_wide"):
            migrate(connection, schema=schema, lock_timeout_seconds=0.05)
        assert [found.name for found in pending(connection, schema=schema)] == ["500_wide"]
        traffic.rollback()
        assert migrate(connection, schema=schema) == ["500_wide"]


def test_nothing_is_left_in_the_session(empty_url: str) -> None:
    settings = ("role", "lock_timeout", "statement_timeout", "search_path")
    with psycopg.connect(empty_url, autocommit=True) as connection:

        def session() -> list[object]:
            return [connection.execute(f"show {name}").fetchone() for name in settings]

        before = session()
        migrate(connection)
        assert session() == before
        held = (
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        )
        assert connection.execute(held).fetchone() == (0,)
        assert connection.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)


def test_a_statement_timeout_of_the_session_does_not_cut_a_file(
    empty_url: str, schema: Path
) -> None:
    (schema / "500_slow.sql").write_text("select pg_sleep(0.8);")
    with psycopg.connect(empty_url, options="-c statement_timeout=500ms") as connection:
        assert migrate(connection, schema=schema)[-1] == "500_slow"


def test_a_connection_in_a_transaction_is_refused(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("select 1")
        with pytest.raises(ServerUnsuitable, match="not in a transaction"):
            migrate(connection)


def test_a_database_with_another_default_isolation_is_refused(
    make_database: Callable[..., str],
) -> None:
    url = make_database()
    with psycopg.connect(url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        setting = "alter database {} set default_transaction_isolation = 'repeatable read'"
        connection.execute(sql.SQL(setting).format(database))
    with (
        psycopg.connect(url) as connection,
        pytest.raises(ServerUnsuitable, match="repeatable read"),
    ):
        migrate(connection)


def test_a_database_of_another_encoding_is_refused(make_database: Callable[..., str]) -> None:
    url = make_database("encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'")
    with psycopg.connect(url) as connection, pytest.raises(ServerUnsuitable, match="SQL_ASCII"):
        migrate(connection)


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (GOOD, None),
        (GOOD._replace(number=180006), None),
        (GOOD._replace(number=140020, version="14.20"), "PostgreSQL 14.20 is not supported"),
        (GOOD._replace(number=190000, version="19beta1"), "PostgreSQL 19beta1 is not supported"),
        (GOOD._replace(replica=True), "read-only replica"),
        (GOOD._replace(isolation="serializable"), "serializable in database app"),
        (GOOD._replace(encoding="LATIN1"), "encoded in LATIN1"),
    ],
)
def test_what_fencepost_cannot_live_on(server: Server, sentence: str | None) -> None:
    why = unsuitable(server)
    assert why == sentence if sentence is None else sentence in (why or "")


def test_who_may_not_create_the_schema_is_told_so_in_one_line(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute("set role pg_monitor")
        with pytest.raises(MigrationFailed, match=r"^owner: permission denied.*$"):
            migrate(admin)
