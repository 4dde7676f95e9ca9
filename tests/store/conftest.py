"""The bench around a real PostgreSQL, for every test of the store."""

from collections.abc import Iterator

import pytest

from tests.store.postgres_bench import PostgresBench, new_database


@pytest.fixture(scope="module")
def module_bench(server_url: str, template: str) -> Iterator[PostgresBench]:
    with new_database(server_url, template) as url, PostgresBench(url) as opened:
        yield opened


@pytest.fixture
def bench(module_bench: PostgresBench) -> PostgresBench:
    """One database for a module, emptied for each test: the store meets it with the plans of the test before."""
    module_bench.reset()
    return module_bench


@pytest.fixture
def own_bench(server_url: str, template: str) -> Iterator[PostgresBench]:
    """A database of this test's own: what it changes beside the tables harms nobody."""
    with new_database(server_url, template) as url, PostgresBench(url) as opened:
        yield opened
