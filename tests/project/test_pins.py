"""What ships is what is tested: the layer's pins are those of the development environment, hash for hash."""

import re
import tomllib
from functools import cache

from tests.project.sources import ROOT

LAYER = ROOT / "layers" / "dependencies" / "requirements.txt"
WANTED = ROOT / "requirements" / "layer.in"
DEVELOPMENT = ROOT / "requirements" / "dev.txt"
PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)", re.MULTILINE)


@cache
def pins(text: str) -> dict[str, str]:
    return {found["name"]: found["version"] for found in PIN.finditer(text)}


def hashes(text: str) -> dict[str, set[str]]:
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    return {
        found["name"]: set(re.findall(r"sha256:[0-9a-f]{64}", block))
        for block in blocks
        if (found := PIN.match(block))
    }


def test_the_layer_ships_the_versions_that_are_tested() -> None:
    layer, development = pins(LAYER.read_text()), pins(DEVELOPMENT.read_text())
    assert layer
    assert {name: development.get(name) for name in layer} == layer


def test_every_pin_carries_its_hashes_and_both_files_the_same() -> None:
    layer, development = hashes(LAYER.read_text()), hashes(DEVELOPMENT.read_text())
    assert all(layer.values())
    assert all(development.values())
    assert {name: development[name] for name in layer} == layer


def test_the_layer_has_what_is_wanted_in_it() -> None:
    wanted = pins(WANTED.read_text())
    assert wanted.items() <= pins(LAYER.read_text()).items()


def test_the_project_declares_what_the_layer_ships() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[\[<>=!~ ]", one)[0] for one in project["dependencies"]}
    assert declared == set(pins(WANTED.read_text()))
