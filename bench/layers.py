"""The two layers as a deployment unpacks them, from what is installed here: with bytecode or without."""

import compileall
import contextlib
import py_compile
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rig.ground import ROOT

PINS = ROOT / "layers" / "dependencies" / "requirements.txt"
SHARED = ROOT / "shared" / "fencepost"


def lay(folder: Path, *, compiled: bool) -> tuple[Path, Path]:
    """The dependencies' layer and the shared one, as folders for the path."""
    dependencies, shared = folder / "dependencies", folder / "shared"
    for name in re.findall(r"^([a-z0-9_.-]+)==", PINS.read_text(), re.MULTILINE):
        with contextlib.suppress(PackageNotFoundError):  # for another system than this one
            _copy(name, dependencies)
    shutil.copytree(SHARED, shared / "fencepost", ignore=shutil.ignore_patterns("__pycache__"))
    if compiled:
        for layer in (dependencies, shared):
            compileall.compile_dir(
                layer, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
            )
    return dependencies, shared


def size_mib(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def zipped_mib(folder: Path) -> float:
    """What is uploaded and fetched."""
    archive = Path(shutil.make_archive(str(folder), "zip", folder))
    return archive.stat().st_size / 2**20


def _copy(name: str, layer: Path) -> None:
    for file in distribution(name).files or ():
        source = Path(str(file.locate()))
        if file.parts[0] == ".." or "__pycache__" in file.parts or not source.is_file():
            continue
        target = layer / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
