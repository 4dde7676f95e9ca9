"""docs/database.md on transactions that stay open: its query finds who holds deleted rows back."""

import re
from pathlib import Path

import pytest

from tests.store.postgres_bench import PostgresBench
from tests.store.session import session

pytestmark = pytest.mark.postgres
PAGE = (Path(__file__).parents[2] / "docs" / "database.md").read_text()


def test_the_query_of_the_page_finds_who_holds_a_snapshot(bench: PostgresBench) -> None:
    """A snapshot that nobody looked for once kept every deleted row, and claims became slower by the hour."""
    (query,) = re.findall(r"^select pid,[^;]*", PAGE, re.MULTILINE)
    with session(bench.url) as holder:
        holder.rows("set transaction isolation level repeatable read")
        holder.rows("select count(*) from fencepost.queue")
        bench.enqueue(10)
        assert holder.pid in [pid for pid, *_ in bench.rows(query)]
        holder.commit()
        assert holder.pid not in [pid for pid, *_ in bench.rows(query)]
