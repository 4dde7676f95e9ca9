"""The hash of a release: another one for whatever ships, the same one for the same tree."""

import shutil
from pathlib import Path

import pytest

from rig.ground import ROOT
from rig.release_hash import DEPLOYED, deployed, release_hash


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is deployed."""
    for name in DEPLOYED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, tmp_path / name)
    return tmp_path


def test_the_same_tree_has_the_same_hash_wherever_it_lies(tree: Path) -> None:
    assert len(release_hash(tree)) == 64
    assert release_hash(tree) == release_hash(ROOT)


@pytest.mark.parametrize(
    "name",
    [
        "template.yaml",
        "shared/fencepost/core/run.py",
        "shared/fencepost/store/schema/012_exchange.sql",
        "shared/Makefile",
        "layers/dependencies/requirements.txt",
        "functions/deliver/handler.py",
        "functions/backfill/handler.py",
        "functions/migrate/handler.py",
    ],
)
def test_whatever_ships_changes_it(tree: Path, name: str) -> None:
    before = release_hash(tree)
    with (tree / name).open("a") as file:
        file.write("\n")
    assert release_hash(tree) != before


def test_a_file_that_is_moved_or_new_changes_it(tree: Path) -> None:
    hashes = {release_hash(tree)}
    (tree / "shared/fencepost/core/tally.py").rename(tree / "shared/fencepost/core/moved.py")
    hashes.add(release_hash(tree))
    (tree / "shared/fencepost/core/new.py").touch()
    hashes.add(release_hash(tree))
    assert len(hashes) == 3


def test_what_was_built_and_when_is_no_part_of_it(tree: Path) -> None:
    before = release_hash(tree)
    (tree / "shared/fencepost/__pycache__").mkdir(exist_ok=True)
    (tree / "shared/fencepost/__pycache__/run.cpython-313.pyc").write_bytes(b"built")
    (tree / "template.yaml").touch()
    assert release_hash(tree) == before


def test_nothing_is_forgotten() -> None:
    """Every folder the template builds from is in it."""
    names = {file.relative_to(ROOT).as_posix() for file in deployed()}
    assert {"template.yaml", "shared/fencepost/bootstrap.py"} <= names
    assert not [name for name in names if "__pycache__" in name]
