import psycopg
import pytest

pytestmark = pytest.mark.postgres


def test_every_table_of_the_design_is_there(connection: psycopg.Connection) -> None:
    rows = connection.execute("select tablename from pg_tables where schemaname = 'fencepost'")
    tables = {name for (name,) in rows}
    assert tables >= {"notification", "queue", "closed", "attempt", "evidence", "run", "journal"}
    assert tables >= {"channel", "installation"}
