"""The bench around a real PostgreSQL, for every test of the store."""

from collections.abc import Iterator

import pytest

from tests.store.postgres_bench import PostgresBench


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    opened = PostgresBench(database_url)
    yield opened
    opened.close()
