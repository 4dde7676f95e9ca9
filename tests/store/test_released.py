"""In every deploy two versions of the code run side by side on the newer schema: the older one finds all it says."""

import psycopg
import pytest

from fencepost.core.version import CODE_VERSION
from tests.store.released import Release, broken, releases, said_now, version_being_made

pytestmark = pytest.mark.postgres


def latest() -> Release:
    return releases()[version_being_made()]


@pytest.mark.parametrize("version", releases())
def test_the_code_of_a_release_finds_what_it_says(
    connection: psycopg.Connection, version: str
) -> None:
    assert broken(connection, releases()[version]) == [], (
        "a release that is out: keep its functions; one that is not yet: python -m tests.store.released"
    )


def test_this_release_has_its_record() -> None:
    """So that the next one can be held to it; `python -m tests.store.released` writes it."""
    assert version_being_made() in releases()


def test_the_record_of_this_release_is_what_this_code_says(connection: psycopg.Connection) -> None:
    recorded, now = latest(), said_now(connection)
    assert recorded.code_version == CODE_VERSION
    assert set(recorded.statements) == set(now.statements), "python -m tests.store.released"


@pytest.mark.parametrize(
    "change",
    [
        "drop function fencepost.has_work(text[])",
        "alter function fencepost.start_run rename to begin_run",
        "revoke execute on function fencepost.exchange from fencepost_worker",
        "alter type fencepost.kind add value 'forgotten'",
        "drop function fencepost.bound_to; "
        "create function fencepost.bound_to() returns varchar language sql as $$select 'x'::varchar$$; "
        "grant execute on function fencepost.bound_to to fencepost_worker, fencepost_operator, fencepost_reader",
    ],
)
def test_a_schema_that_does_more_than_expand_is_seen(
    connection: psycopg.Connection, change: str
) -> None:
    connection.execute(change.encode())
    assert broken(connection, latest()) != []


def test_a_schema_that_only_expands_is_no_break(connection: psycopg.Connection) -> None:
    connection.execute("create table fencepost.later (id int)")
    connection.execute("alter table fencepost.notification add column later text")
    connection.execute(
        "create function fencepost.later(p int) returns int language sql as 'select 1'"
    )
    assert broken(connection, latest()) == []
