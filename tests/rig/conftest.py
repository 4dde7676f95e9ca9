"""A provider of the test's own, and a sender that signs by itself."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rig.receiver import LocalProvider, local_provider
from tests.rig.sender import Sender


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    with local_provider(tmp_path) as started:
        yield started


@pytest.fixture
def sender(provider: LocalProvider) -> Iterator[Sender]:
    with closing(Sender(provider.url)) as one:
        yield one
