"""docs/producers.md on local times: a day counts once, also where clocks are changed on it."""

import re
from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.postgres
PAGE = (Path(__file__).parents[2] / "docs" / "producers.md").read_text()
DUE = """
select to_char(due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI') from fencepost.notification order by id"""


@pytest.mark.parametrize(
    ("day", "due"),
    [
        ("2090-03-25", "2090-03-25 01:30"),
        ("2090-03-26", "2090-03-26 01:30"),  # there is no 02:30: 03:30 in Berlin
        ("2090-03-27", "2090-03-27 00:30"),
        ("2090-10-29", "2090-10-29 01:30"),  # there are two: the second
    ],
)
def test_each_local_day_is_sent_once(connection: psycopg.Connection, day: str, due: str) -> None:
    """Where clocks change, a daily message is skipped or doubled by whoever keeps local times as they are."""
    (statement,) = re.findall(r"^select id, created\n[^;]*at time zone[^;]*", PAGE, re.MULTILINE)
    connection.execute(
        "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
    )
    said = [
        connection.execute(statement.replace("2027-03-28", day).encode()).fetchall()
        for _ in range(3)
    ]
    assert [created for ((_, created),) in said] == [True, False, False]
    assert connection.execute(DUE).fetchall() == [(due,)]
