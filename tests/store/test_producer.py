"""`fencepost.enqueue` in the caller's own transaction, whatever he talks to PostgreSQL with."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import fencepost
from fencepost import Enqueued, EnqueueRefused, NewNotification, Refused

pytestmark = pytest.mark.postgres


@dataclass(frozen=True, slots=True)
class Caller:
    """One way to talk to PostgreSQL: a transaction of its own, and one statement of its own data in it."""

    name: str
    transaction: Callable[[str], AbstractContextManager[Any]]  # rolls back when left by an error
    execute: Callable[[Any, str], Any]


@contextmanager
def psycopg_connection(url: str) -> Iterator[Any]:
    with psycopg.connect(url) as connection:
        yield connection


@contextmanager
def psycopg_dictionaries(url: str) -> Iterator[Any]:
    """Row factory and cursor factory of the caller's taste: neither may matter."""
    with psycopg.connect(
        url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor
    ) as connection:
        yield connection


@contextmanager
def psycopg_cursor(url: str) -> Iterator[Any]:
    with psycopg.connect(url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        yield cursor


@contextmanager
def sqlalchemy_connection(url: str) -> Iterator[Any]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def sqlalchemy_session(url: str) -> Iterator[Any]:
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool
    )
    with Session(engine) as session, session.begin():
        yield session


@contextmanager
def django_connection(url: str) -> Iterator[Any]:
    import django
    from django.conf import settings
    from django.db import connections, transaction

    if not settings.configured:
        settings.configure(USE_TZ=True, DATABASES={})
        django.setup()
    parts = conninfo_to_dict(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }
    connections.settings = connections.configure_settings({"default": database})
    try:
        with transaction.atomic():
            yield connections["default"]
    finally:
        connections["default"].close()
        del connections["default"]


@contextmanager
def django_cursor(url: str) -> Iterator[Any]:
    with django_connection(url) as connection, connection.cursor() as cursor:
        yield cursor


def _by_cursor(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


CALLERS = [
    Caller("psycopg connection", psycopg_connection, lambda c, s: c.execute(s)),
    Caller("psycopg with factories", psycopg_dictionaries, lambda c, s: c.execute(s)),
    Caller("psycopg cursor", psycopg_cursor, lambda c, s: c.execute(s)),
    Caller("SQLAlchemy connection", sqlalchemy_connection, lambda c, s: c.execute(text(s))),
    Caller("SQLAlchemy session", sqlalchemy_session, lambda c, s: c.execute(text(s))),
    Caller("Django connection", django_connection, _by_cursor),
    Caller("Django cursor", django_cursor, lambda c, s: c.execute(s)),
]


class Changed(Exception):
    """The caller thinks better of it."""


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.name)
def caller(request: pytest.FixtureRequest) -> Caller:
    given: Caller = request.param
    return given


@pytest.fixture(autouse=True)
def channels(connection: psycopg.Connection) -> None:
    connection.execute(
        "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
    )
    connection.execute("create table orders (id int)")


def counted(connection: psycopg.Connection) -> tuple[int, ...]:
    counts = (
        "select (select count(*) from orders), (select count(*) from fencepost.notification),"
        " (select count(*) from fencepost.queue)"
    )
    return connection.execute(counts).fetchone() or ()


def test_notifications_share_the_fate_of_the_callers_data(
    caller: Caller, connection: psycopg.Connection, database_url: str
) -> None:
    with suppress(Changed), caller.transaction(database_url) as mine:
        caller.execute(mine, "insert into orders values (1)")
        assert fencepost.enqueue(mine, "push", "token", {"title": "Hi"}).created
        assert len(fencepost.enqueue_many(mine, [new(), new()])) == 2
        raise Changed
    assert counted(connection) == (0, 0, 0)
    with caller.transaction(database_url) as mine:
        caller.execute(mine, "insert into orders values (1)")
        one = fencepost.enqueue(mine, "push", "token", {"title": "100 %"}, dedupe_key="k")
        assert fencepost.enqueue_many(mine, [new(), new(dedupe_key="k")])[1] == Enqueued(
            id=one.id, created=False, differs=True
        )
        caller.execute(mine, "insert into orders values (2)")
        assert counted(connection) == (0, 0, 0)
    assert counted(connection) == (2, 2, 2)


def test_everything_said_arrives_through_every_caller(
    caller: Caller, connection: psycopg.Connection, database_url: str
) -> None:
    due = datetime(2090, 1, 1, 12, tzinfo=UTC)
    payload = {"title": 'a "b" \\ %s {} é 😀', "data": {"n": [1, None, 1.5]}, "badge": 3}
    with caller.transaction(database_url) as mine:
        first = fencepost.enqueue(mine, "push", "one", {})
        fencepost.enqueue(
            mine,
            "push",
            "two",
            payload,
            due_at=due,
            ttl=timedelta(hours=1, microseconds=5),
            priority=0,
            dedupe_key="k",
            on_uncertain="resend",
            replay_of=first.id,
        )
    query = "select recipient, payload, due_at, expires_at, priority, dedupe_key, on_uncertain, replay_of from fencepost.notification order by id desc limit 1"  # noqa: E501
    assert connection.execute(query).fetchone() == (
        "two",
        payload,
        due,
        due + timedelta(hours=1, microseconds=5),
        0,
        "k",
        "resend",
        first.id,
    )


def new(**fields: Any) -> NewNotification:
    return NewNotification(**{"channel": "push", "recipient": "r", "payload": {}, **fields})


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({"recipient": "a\0b"}, "recipient: holds the character U+0000"),
    ({"recipient": "\ud800"}, "recipient: holds a lone surrogate"),
    ({"recipient": 7}, "recipient: must be a string"),
    ({"dedupe_key": "\0"}, "dedupe_key: holds the character U+0000"),
    ({"dedupe_key": 7}, "dedupe_key: must be a string"),
    ({"channel": "\udfff"}, "channel: holds a lone surrogate"),
    ({"payload": {"titel": "x"}}, 'payload: unknown key "titel"'),
    ({"payload": {"title": "\0"}}, "payload.title: holds the character U+0000"),
    ({"payload": {"data": {"at": datetime.now(UTC)}}}, "payload.data: datetime has no JSON form"),
    ({"payload": None}, "payload: must be a JSON object"),
    ({"due_at": datetime(2090, 1, 1)}, "due_at: has no time zone"),  # noqa: DTZ001
    (
        {"expires_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))},
        "expires_at: lies outside the years 1 to 9999",
    ),
    ({"expires_at": "2090"}, "expires_at: must be a datetime"),
    ({"delay": 5}, "delay: must be a timedelta"),
    ({"ttl": timedelta.max}, "ttl: longer than 3650 days"),
    ({"priority": "high"}, "priority: must be a whole number"),
    ({"priority": True}, "priority: must be a whole number"),
    ({"priority": 2**31}, "priority: must lie between 0 and 2"),
    ({"replay_of": 2**63}, f"replay_of: must lie between 0 and {2**63 - 1}"),
]


def test_a_slip_is_refused_before_it_can_spoil_the_transaction(
    connection: psycopg.Connection, subtests: pytest.Subtests
) -> None:
    with connection.transaction():
        for fields, fault in BAD:
            with subtests.test(fault), pytest.raises(EnqueueRefused) as refused:
                fencepost.enqueue_many(connection, [new(), new(**fields)])
            assert (refused.value.row, refused.value.fault) == (2, fault)
            assert str(refused.value) == f"row 2, {fault}"
        connection.execute("insert into orders values (1)")
    assert counted(connection) == (1, 0, 0)


def test_not_atomic_answers_each_row_whoever_found_it_bad(connection: psycopg.Connection) -> None:
    rows = [
        new(dedupe_key="k"),
        new(recipient="\0"),
        new(channel="nope"),
        new(dedupe_key="k", payload={"badge": 1}),
        new(priority=9),
    ]
    first, second, third, fourth, fifth = fencepost.enqueue_many(connection, rows, atomic=False)
    assert isinstance(first, Enqueued)
    assert second == Refused("recipient: holds the character U+0000")
    assert third == Refused('channel: there is no channel "nope"')
    assert fourth == Enqueued(id=first.id, created=False, differs=True)
    assert fifth == Refused("priority: must lie between 0 and 2")
    assert fencepost.enqueue_many(connection, []) == []


def test_what_only_the_database_knows_is_the_drivers_error(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.DataError, match=r"^row 1, channel: there is no") as caught:
        fencepost.enqueue(connection, "nope", "r", {})
    assert caught.value.sqlstate == "22X01"


def test_an_asynchronous_connection_is_told_what_to_do(database_url: str) -> None:
    async def attempt() -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            fencepost.enqueue(connection, "push", "r", {})

    with pytest.raises(TypeError, match="synchronous"):
        asyncio.run(attempt())


def test_importing_fencepost_loads_nothing_that_only_producers_need() -> None:
    code = (
        "import sys, fencepost; "
        "sys.exit(any(name in sys.modules for name in ('psycopg', 'json', 'datetime', 'inspect')))"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", _with_path(code)], check=True, timeout=240)


def _with_path(code: str) -> str:
    """Isolated, so that what else is installed loads nothing either."""
    source = str(next(iter(fencepost.__path__))).removesuffix("/fencepost")
    return f"import sys; sys.path.insert(0, {source!r}); {code}"
