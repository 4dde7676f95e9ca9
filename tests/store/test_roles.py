"""Each role does its own work and nothing else; where roles cannot be made everything works, and the tools say so."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import fencepost
from fencepost.store.migrate import boundary_missing, migrate
from fencepost.store.operator import Operator
from rig.postgres import debian_binaries, embedded_binaries, local_postgres
from tests.store.test_pooler import deliver

pytestmark = pytest.mark.postgres

ROLES = ("producer", "worker", "operator", "reader")
TABLES = [
    "notification",
    "queue",
    "closed",
    "attempt",
    "evidence",
    "run",
    "journal",
    "channel",
    "installation",
    "migration",
    "unregistered",
]
MAY: dict[str, list[str]] = {
    "producer": [
        "select * from fencepost.enqueue('push', 'r', '{}')",
        "select * from fencepost.enqueue('push', 'r', '{}'::jsonb, dedupe_key => 'k')",
        "select * from fencepost.enqueue_many('{push}', '{r}', '{\"{}\"}')",
        "select * from fencepost.status(1)",
        "select * from fencepost.status('push', 'k')",
        "select * from fencepost.unregistered()",
    ],
    "worker": [
        "select fencepost.has_work('{}'::text[])",
        "select fencepost.bound_to()",
        "select * from fencepost.prune()",
    ],
    "operator": [
        "select * from fencepost.enqueue('push', 'r', '{}')",
        "select * from fencepost.status_report()",
        "select * from fencepost.channel_list()",
        "select fencepost.channel_pause('push', 'because')",
        "select * from fencepost.channel_resume('push')",
        "select fencepost.inspect(1)",
        "select fencepost.boundary_missing()",
        "select * from fencepost.conservation()",
        "select * from fencepost.prune()",
        "select * from fencepost.prune_closed(86400, 0, 10)",
        "select * from fencepost.uncertain_page(null, null, null, null, 10)",
        "select * from fencepost.unregistered_page('push', true, true, 10)",
        "select fencepost.unregistered_resolve('push', true, 'ann')",
    ],
    "reader": [
        "select * from fencepost.status(1)",
        "select * from fencepost.status_report()",
        "select * from fencepost.queue",
        "select * from fencepost.closed",
        "select * from fencepost.attempts",
        "select * from fencepost.migration",
        "select id, channel, priority, due_at from fencepost.notification",
    ],
}


@pytest.fixture(autouse=True)
def channel(connection: psycopg.Connection) -> None:
    connection.execute(
        "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
    )


def become(connection: psycopg.Connection, role: str) -> None:
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(f"fencepost_{role}")))


def refused(connection: psycopg.Connection, statement: str) -> bool:
    try:
        connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_its_work(connection: psycopg.Connection, role: str) -> None:
    become(connection, role)
    for statement in MAY[role]:
        connection.execute(statement.encode())


@pytest.mark.parametrize("role", ROLES)
def test_a_role_can_write_no_table_and_read_none_that_is_not_its(
    connection: psycopg.Connection, role: str
) -> None:
    become(connection, role)
    writes = ["insert into {} default values", "update {} set {} = {}", "delete from {}"]
    writes += ["truncate {}", "drop table {}", "select 1 from {} for update"]
    columns: dict[str, str] = dict(
        connection.execute(
            "select relname, attname from pg_class join pg_attribute on attrelid = pg_class.oid"
            " where relnamespace = 'fencepost'::regnamespace and relkind = 'r' and attnum = 1"
        ).fetchall()
    )
    assert set(TABLES) <= set(columns)
    for table, column in columns.items():
        for write in writes:
            statement = write.format(f"fencepost.{table}", column, column)
            assert refused(connection, statement), statement
        if role != "reader":
            assert refused(connection, f"select 1 from fencepost.{table}"), table
    assert refused(connection, "create table fencepost.mine ()")
    assert refused(connection, "select nextval('fencepost.notification_id_seq')")
    for column in ("recipient", "payload", "dedupe_key", "*"):
        assert refused(connection, f"select {column} from fencepost.notification"), column


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_call_only_what_the_table_of_grants_names(
    connection: psycopg.Connection, role: str
) -> None:
    may = granted(connection, f"fencepost_{role}")
    assert not any(name.endswith("_") for name in may), "an inner step runs only under its caller"
    others = {
        "producer": {"exchange", "start_run", "cancel", "evidence", "redrive", "channel_apply"},
        "worker": {"enqueue", "cancel", "redrive", "resolve", "quarantine", "channel_apply"},
        "operator": {"exchange", "start_run"},
        "reader": {"enqueue", "exchange", "start_run", "cancel", "redrive", "inspect", "bind"},
    }
    assert not may & others[role]


def granted(connection: psycopg.Connection, role: str) -> set[str]:
    query = (
        "select proname from pg_proc where pronamespace = 'fencepost'::regnamespace"
        " and has_function_privilege(%s, oid, 'execute')"
    )
    return {name for (name,) in connection.execute(query, [role]).fetchall()}


def test_the_page_names_what_a_role_may_call(connection: psycopg.Connection) -> None:
    page = (Path(__file__).parents[2] / "docs" / "database.md").read_text()
    rows = re.findall(r"^\| `fencepost_(\w+)` \|[^|]*\|([^|]*)\|", page, re.MULTILINE)
    assert [role for role, _ in rows] == [*ROLES, "owner"]
    for role, may in rows[:-1]:
        named = set(re.findall(r"`(\w+)`", may))
        assert named <= granted(connection, f"fencepost_{role}"), role
        if role in ("producer", "worker"):
            assert named == granted(connection, f"fencepost_{role}"), role


def test_every_function_is_somebodys_or_an_inner_step(connection: psycopg.Connection) -> None:
    """A new function that nobody was granted is forgotten work, not a secret."""
    names = "select proname from pg_proc where pronamespace = 'fencepost'::regnamespace"
    every = {name for (name,) in connection.execute(names).fetchall()}
    someones = {name for role in ROLES for name in granted(connection, f"fencepost_{role}")}
    defaults = {"nobody", "longest_lease"}  # column defaults and constants, used by the owner
    assert {name for name in every - someones if not name.endswith("_")} == defaults


def test_whoever_has_no_role_may_call_nothing(connection: psycopg.Connection) -> None:
    stranger = f"stranger_{uuid4().hex[:8]}"
    connection.execute(f"create role {stranger}".encode())
    try:
        assert granted(connection, stranger) == set()
        connection.execute(f"set role {stranger}".encode())
        for statements in MAY.values():
            for statement in statements:
                assert refused(connection, statement), statement
    finally:
        connection.execute("reset role")
        connection.execute(f"drop role {stranger}".encode())


def test_every_function_that_can_be_called_runs_as_the_owner_on_a_fixed_path(
    connection: psycopg.Connection,
) -> None:
    query = (
        "select proname, prosecdef, coalesce(proconfig, '{}') @> '{\"search_path=pg_catalog, pg_temp\"}',"
        " pg_get_userbyid(proowner) from pg_proc where pronamespace = 'fencepost'::regnamespace"
    )
    someones = {name for role in ROLES for name in granted(connection, f"fencepost_{role}")}
    for name, definer, fixed, owner in connection.execute(query).fetchall():
        assert owner == "fencepost_owner", name
        assert name not in someones or (definer and fixed), name


def test_the_owner_cannot_log_in_and_owns_everything(connection: psycopg.Connection) -> None:
    query = "select rolcanlogin, rolsuper from pg_roles where rolname = 'fencepost_owner'"
    assert connection.execute(query).fetchone() == (False, False)
    owners = (
        "select pg_get_userbyid(relowner) from pg_class where relnamespace = 'fencepost'::regnamespace"
        " union select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'fencepost'"
    )
    assert connection.execute(owners).fetchall() == [("fencepost_owner",)]
    assert len(boundary_missing(connection)) == 3, "a copied database has lost its roles' timeouts"
    migrate(connection)
    assert boundary_missing(connection) == []


def test_shadowing_tables_functions_and_paths_change_nothing(
    connection: psycopg.Connection,
) -> None:
    """What a producer can create in his own schemas must not be what the owner's functions run."""
    connection.execute("create schema trap")
    connection.execute("grant all on schema trap to public")
    become(connection, "producer")
    for table in ("notification", "queue", "channel"):
        connection.execute(f"create temp table {table} (id int, notification_id int)".encode())
    for function in (
        "trap.jsonb_typeof(jsonb) returns text",
        "trap.octet_length(text) returns int",
        "trap.now_() returns timestamptz",
        "trap.greatest_(text) returns text",
    ):
        body = " language plpgsql as $$begin raise exception 'trapped as %', current_user; end$$"
        connection.execute(f"create function {function}{body}".encode())
    connection.execute("create type pg_temp.kind as enum ('x')")
    connection.execute("set search_path = trap, pg_temp, fencepost, pg_catalog")
    made = "select created from fencepost.enqueue('push', 'r', '{\"title\": \"x\"}', dedupe_key => 'k')"
    assert connection.execute(made).fetchone() == (True,)
    assert connection.execute("select state from fencepost.status(1)").fetchone() == ("due",)
    assert connection.execute("select count(*) from pg_temp.queue").fetchone() == (0,)
    connection.execute("reset role")
    assert connection.execute("select count(*) from fencepost.queue").fetchone() == (1,)


def test_grants_come_back_with_the_next_migrate_whatever_was_done_to_them(
    connection: psycopg.Connection,
) -> None:
    connection.execute("grant insert on fencepost.queue to fencepost_producer")
    connection.execute("grant execute on all functions in schema fencepost to public")
    connection.execute("revoke execute on function fencepost.status(bigint) from fencepost_reader")
    migrate(connection)
    assert "claim_" not in granted(connection, "fencepost_producer")
    assert "status" in granted(connection, "fencepost_reader")
    become(connection, "producer")
    assert refused(connection, "insert into fencepost.queue default values")


def test_timeouts_are_settings_of_the_roles(connection: psycopg.Connection) -> None:
    query = (
        "select r.rolname, unnest(s.setconfig) from pg_db_role_setting s join pg_roles r on r.oid = s.setrole"
        " join pg_database d on d.oid = s.setdatabase where d.datname = %s"
    )
    migrate(connection)  # the fixture's database is a copy: settings belong to the original's name
    rows = connection.execute(query, [connection.info.dbname]).fetchall()
    for role in ("fencepost_worker", "fencepost_operator", "fencepost_reader"):
        names = {setting.partition("=")[0] for name, setting in rows if name == role}
        assert names == {
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
        }, role


# --- servers of their own: who may create roles, and who may not ---------------------------------------

MAJORS: dict[str, Callable[[], Path | None]] = {
    "18": embedded_binaries,
    "15": lambda: debian_binaries(15),
}


@pytest.fixture(params=list(MAJORS))
def fresh_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server on which nobody has migrated anything yet."""
    binaries = MAJORS[request.param]()
    if binaries is None or not (binaries / "postgres").exists():
        pytest.skip(f"no PostgreSQL {request.param} here")
    with local_postgres(binaries=binaries) as server:
        with psycopg.connect(server.url, autocommit=True) as admin:
            for name, right in (("plain", "nocreaterole"), ("maker", "createrole")):
                admin.execute(f"create role {name} login {right}".encode())
                admin.execute(f"create database {name} owner {name}".encode())
        yield server.url


@pytest.mark.slow
def test_without_the_right_to_make_roles_everything_works_and_the_result_says_what_is_missing(
    fresh_server: str,
) -> None:
    url = make_conninfo(fresh_server, user="plain", dbname="plain")
    with psycopg.connect(url, autocommit=True) as owner:
        assert migrate(owner)
        assert migrate(owner) == []
        missing = boundary_missing(owner)
        assert any("schema belongs to plain, who can log in" in sentence for sentence in missing)
        owner.execute(
            "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
        )
        for statements in MAY.values():
            for statement in statements:
                owner.execute(statement.encode())
    # An administrator makes the roles; the next migrate gives them their rights.
    with psycopg.connect(fresh_server, autocommit=True) as admin:
        for role in ROLES:
            admin.execute(
                f"do $$begin create role fencepost_{role}; exception when duplicate_object then null; end$$".encode()
            )
    with psycopg.connect(url, autocommit=True) as owner:
        migrate(owner)
        assert "enqueue" in granted(owner, "fencepost_producer")
        *timeouts, _ = boundary_missing(owner)
        assert [sentence.split(" in this database")[0] for sentence in sorted(timeouts)] == [
            f"role fencepost_{role} has no statement_timeout, lock_timeout, "
            "idle_in_transaction_session_timeout"
            for role in ("operator", "reader", "worker")
        ], "roles of an administrator: only he can give them their timeouts"


@pytest.mark.slow
def test_with_the_right_to_make_roles_no_superuser_is_needed(fresh_server: str) -> None:
    url = make_conninfo(fresh_server, user="maker", dbname="maker")
    with psycopg.connect(url, autocommit=True) as maker:
        assert migrate(maker)
        assert migrate(maker) == []
        assert boundary_missing(maker) == []
        owner = "select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'fencepost'"
        assert maker.execute(owner).fetchone() == ("fencepost_owner",)
    with psycopg.connect(fresh_server, autocommit=True) as admin:
        admin.execute("create role app login in role fencepost_producer")
    with psycopg.connect(make_conninfo(url, user="app"), autocommit=True) as app:
        assert app.execute("select * from fencepost.status(1)").fetchall() == []
        assert refused(app, "select * from fencepost.queue")
    with psycopg.connect(make_conninfo(url, user="fencepost_worker"), autocommit=True) as worker:
        assert worker.execute("show statement_timeout").fetchone() == ("10s",)
        assert worker.execute("select fencepost.has_work('{}'::text[])").fetchone() == (False,)
        assert refused(worker, "delete from fencepost.queue")


@pytest.mark.slow
def test_a_notification_lives_its_whole_life_through_the_roles_alone(fresh_server: str) -> None:
    """Operator, producer and worker, each logged in as its role; nobody is the owner."""
    url = make_conninfo(fresh_server, user="maker", dbname="maker")
    with psycopg.connect(url, autocommit=True) as maker:
        migrate(maker)
    with Operator(make_conninfo(url, user="fencepost_operator")) as operator:
        operator.bind("test")
        operator.apply_channels([{"name": "push", "sender": "webhook", "on_uncertain": "hold"}])
        with psycopg.connect(fresh_server, autocommit=True) as admin:
            admin.execute("create role app login in role fencepost_producer")
        with psycopg.connect(make_conninfo(url, user="app")) as app:
            ids = [fencepost.enqueue(app, "push", "r", {}).id for _ in range(10)]
        assert [one.became for one in operator.cancel(ids[:1], why="test")] == ["cancelled"]
        worker = make_conninfo(url, user="fencepost_worker")
        assert sorted(asyncio.run(deliver(worker))) == ids[1:]
        assert operator.inspect(ids[-1]) is not None
        [status] = operator.status()
        assert (status.due, status.leased) == (0, 0)
    with psycopg.connect(make_conninfo(url, user="fencepost_reader"), autocommit=True) as reader:
        assert reader.execute("select holds from fencepost.conservation()").fetchone() == (True,)


@pytest.mark.slow
def test_databases_of_one_server_may_be_migrated_at_once(fresh_server: str) -> None:
    """Roles belong to the server, turns to a database: each finds the roles that another is just making."""
    names = [f"shop_{number}" for number in range(4)]
    with psycopg.connect(fresh_server, autocommit=True) as admin:
        for name in names:
            admin.execute(f"create database {name} owner maker".encode())
    together = threading.Barrier(len(names))

    def one(name: str) -> list[str]:
        url = make_conninfo(fresh_server, user="maker", dbname=name)
        with psycopg.connect(url, autocommit=True) as maker:
            together.wait(120)
            migrate(maker)
            return boundary_missing(maker)

    with ThreadPoolExecutor(len(names)) as pool:
        assert list(pool.map(one, names)) == [[]] * len(names)


@pytest.mark.slow
def test_a_second_database_whose_owner_did_not_make_the_roles_says_that_timeouts_are_missing(
    fresh_server: str,
) -> None:
    with psycopg.connect(make_conninfo(fresh_server, user="maker", dbname="maker")) as maker:
        migrate(maker)
        assert boundary_missing(maker) == []
    with psycopg.connect(
        make_conninfo(fresh_server, user="plain", dbname="plain"), autocommit=True
    ) as plain:
        migrate(plain)
        said = [one for one in boundary_missing(plain) if "statement_timeout" in one]
        assert len(said) == 3, "worker, operator, reader"
    with psycopg.connect(fresh_server, autocommit=True) as admin:
        for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            admin.execute(f"alter role fencepost_worker set {setting} = '9s'".encode())
    with psycopg.connect(make_conninfo(fresh_server, user="plain", dbname="plain")) as plain:
        left = " ".join(boundary_missing(plain))
        assert "fencepost_worker" not in left, "of the role everywhere is of it here"
        assert "fencepost_reader" in left
