"""Drills need Linux and the runtime interface emulator; without them they say why they skip."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rig.event_source import Cloud, local_cloud
from rig.receiver import local_provider
from rig.runtimes import unavailable
from tests.drills.ground import ANY_ADDRESS, Ground
from tests.drills.yard import RECEIVES_MAX, Yard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = unavailable()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.runtime)
            item.add_marker(pytest.mark.postgres)
            item.add_marker(pytest.mark.slow)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def ground(database_url: str, connection: psycopg.Connection, tmp_path: Path) -> Iterator[Ground]:
    with local_provider(tmp_path, address=ANY_ADDRESS) as provider:
        ground = Ground(database_url, connection, provider, tmp_path)
        try:
            yield ground
        finally:
            ground.end()


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with local_cloud() as started:
        yield started


@pytest.fixture
def receives_max() -> int:
    return RECEIVES_MAX


@pytest.fixture
def yard(ground: Ground, cloud: Cloud, tmp_path: Path, receives_max: int) -> Iterator[Yard]:
    ground.channel()
    yard = Yard(ground, cloud, tmp_path, receives_max=receives_max)
    try:
        yield yard
    finally:
        yard.end()
