"""What a release is, as one number: `python -m rig.release_hash` prints a SHA-256 over everything that is deployed.

Contents and names, not times: the same tree gives the same hash on every machine. What was built (bytecode) is not
part of it, the template is: with AutoPublishCodeSha256 set, a changed memory size alone would publish no version.
"""

import hashlib
from pathlib import Path

from rig.ground import ROOT

DEPLOYED = ("template.yaml", "shared", "layers", "functions")
BUILT = frozenset({"__pycache__", ".DS_Store"})


def release_hash(root: Path = ROOT) -> str:
    """64 hexadecimal digits."""
    total = hashlib.sha256()
    for file in deployed(root):
        name = file.relative_to(root).as_posix()
        total.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def deployed(root: Path = ROOT) -> list[Path]:
    """Every file that a deploy ships or is built from, in one order everywhere."""
    files = [file for name in DEPLOYED for file in _files(root / name)]
    return sorted(files, key=lambda file: file.relative_to(root).as_posix())


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    found = (file for file in place.rglob("*") if file.is_file())
    return [
        file
        for file in found
        if not BUILT & set(file.relative_to(place).parts) and ".egg-info" not in str(file)
    ]


if __name__ == "__main__":
    print(release_hash())
