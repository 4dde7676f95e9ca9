"""docs/producers.md is run as it stands: an example that does not work is worse than none."""

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tests.store.test_producer import django_connection

pytestmark = pytest.mark.postgres

PAGE = Path(__file__).parents[2] / "docs" / "producers.md"
BLOCKS = re.findall(r"^```(\w+) (\S+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def shop(connection: psycopg.Connection) -> None:
    connection.execute(
        "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
    )
    connection.execute("create table orders (id int)")


def run_python(kind: str, code: str, url: str) -> None:
    names: dict[str, Any] = {"url": url, "psycopg": psycopg, "Session": Session}
    program = compile(code, str(PAGE), "exec")
    match kind:
        case "psycopg":
            exec(program, names)
        case "sqlalchemy":
            names["engine"] = create_engine(
                "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool
            )
            exec(program, names)
        case "django":
            with django_connection(url):
                exec(program, names)
        case _:
            raise AssertionError(f"no way to run {kind}")


def test_every_example_of_the_page_works(
    connection: psycopg.Connection, database_url: str, subtests: pytest.Subtests
) -> None:
    assert len(BLOCKS) == PAGE.read_text().count("```") // 2, "a block that no test runs"
    for language, how, code in BLOCKS:
        with subtests.test(code[:40]):
            match language, how.partition("="):
                case "python", ("run", "=", kind):
                    run_python(kind, code, database_url)
                case "sql", ("run", "", ""):
                    _run_sql(connection, code)
                case "sql", ("refused", "", ""):
                    _refused_sql(connection, code)
                case _:
                    raise AssertionError(f"no way to run {language} {how}")
    keys = (
        "select dedupe_key from fencepost.notification where dedupe_key like 'order-%' order by id"
    )
    left = ["order-7-left", "order-8-left", "order-9-left", "order-10-left"]
    assert [key for (key,) in connection.execute(keys).fetchall()] == left
    orders = connection.execute("select id from orders order by id").fetchall()
    assert orders == [(7,), (8,), (9,), (10,)]


def _run_sql(connection: psycopg.Connection, code: str) -> None:
    """As a producer would, but for the grant, which is an administrator's."""
    if code.startswith("grant"):
        name = f"shop_{uuid4().hex[:8]}"  # roles belong to the whole server
        connection.execute(f"create role {name}".encode())
        connection.execute(code.replace("to shop", f"to {name}").encode())
        connection.execute(f"drop role {name}".encode())
        return
    connection.execute(code.encode())


def _refused_sql(connection: psycopg.Connection, code: str) -> None:
    statement, _, said = code.partition("-- ")
    with pytest.raises(psycopg.DataError) as caught:
        connection.execute(statement.encode())
    assert f"{caught.value.sqlstate} {caught.value.diag.message_primary}" == said.strip()


def test_the_table_of_arguments_is_the_functions(connection: psycopg.Connection) -> None:
    rows = re.findall(r"^\| `(\w+)`(?: or `(\w+)`)? \|", PAGE.read_text(), re.MULTILINE)
    told = [name for row in rows for name in row if name]
    query = (
        "select proargnames[1:pronargs] from pg_proc where proname = 'enqueue'"
        " and pronamespace = 'fencepost'::regnamespace"
    )
    for (names,) in connection.execute(query).fetchall():
        assert names == told
