import psycopg
import pytest

pytestmark = pytest.mark.postgres


def test_every_table_of_the_design_is_there(connection: psycopg.Connection) -> None:
    rows = connection.execute("select tablename from pg_tables where schemaname = 'fencepost'")
    tables = {name for (name,) in rows}
    assert tables >= {"notification", "queue", "closed", "attempt", "evidence", "run", "journal"}
    assert tables >= {"channel", "installation"}


def test_nothing_that_is_kept_refers_to_what_comes_and_goes(connection: psycopg.Connection) -> None:
    """Where history pointed at its worker by a foreign key, letting one worker go once touched 13 million rows."""
    found = connection.execute(
        """select conrelid::regclass::text, confrelid::regclass::text from pg_constraint
            where contype = 'f' and connamespace = 'fencepost'::regnamespace"""
    ).fetchall()
    assert found == []


def test_no_table_does_anything_by_itself(connection: psycopg.Connection) -> None:
    """A trigger that tells the payload to listeners once broke every enqueue of more than 8,000 bytes."""
    found = connection.execute(
        """select tgrelid::regclass::text, tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
            where c.relnamespace = 'fencepost'::regnamespace and not tgisinternal"""
    ).fetchall()
    assert found == []
    names = "select proname from pg_proc where pronamespace = 'fencepost'::regnamespace"
    told = connection.execute(f"{names} and prosrc ~* '\\m(notify|pg_notify)\\M'".encode())
    assert told.fetchall() == []
