"""A schema file that is out never changes again: databases that have it would never get the change."""

import pytest

from tests.store.released import hashes_now, hashes_of, releases, version_being_made

RECORD = "python -m tests.store.released"


@pytest.mark.parametrize("version", releases())
def test_the_files_of_a_release_are_as_they_were(version: str) -> None:
    now, recorded = hashes_now(), hashes_of(version)
    edited = [name for name, sha256 in recorded.items() if now.get(name) != sha256]
    assert not edited, (
        f"of a release that is out: put them back, and write a new file; of one that is not yet: {RECORD}"
    )


def test_every_file_is_recorded() -> None:
    assert set(hashes_now()) == set(hashes_of(version_being_made())), RECORD
