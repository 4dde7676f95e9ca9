"""`make sam-check` says where the build is and which interpreter is the runtime's; without them these tests skip."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.ground import ROOT
from rig.receiver import SECRET
from rig.runtimes import Runtime, unavailable

BUILT = os.environ.get("FENCEPOST_BUILT", "")
PYTHON = os.environ.get("FENCEPOST_RUNTIME_PYTHON", "")
LAYERS = ("DependenciesLayer", "SharedLayer")
INSTALLATION = "test"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = unavailable()
    if not (BUILT and PYTHON):
        why = "nothing built to invoke: make sam-check builds it and runs these"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.runtime)
            item.add_marker(pytest.mark.postgres)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


@dataclass(frozen=True)
class Build:
    """The folder of a build. Layers are found in /opt/python as in Lambda: on the path, behind the function."""

    folder: Path
    python: str
    logs: Path

    def layer(self, name: str) -> Path:
        return self.folder / name / "python"

    def runtime(self, function: str, environment: Mapping[str, str]) -> Runtime:
        return Runtime(
            {"FENCEPOST_INSTALLATION": INSTALLATION, "WEBHOOK_SECRET": SECRET, **environment},
            timeout_seconds=60,
            folder=self.logs,
            name=function,
            task_root=self.folder / function,
            layers=tuple(self.layer(name) for name in LAYERS),
            python=self.python,
        )


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build((ROOT / BUILT).resolve(), str((ROOT / PYTHON).absolute()), tmp_path)
