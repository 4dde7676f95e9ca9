"""Importing any module of ours has no effect, and the tick's way in pays only for what it needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.sources import ROOT, product

PATHS = [str(ROOT / "shared"), str(ROOT / "cli"), str(ROOT / "functions" / "deliver"), str(ROOT)]
MODULES = sorted({source.module for source in product()} - {"fencepost_cli.__main__"})

WATCH = """
import importlib, json, os, socket, sys, threading
sys.path[:0] = {paths}
for name in {warm}: importlib.import_module(name)  # what others do when they are imported is not ours
def refuse(*_, **__): raise AssertionError("a connection at import")
socket.socket.connect = socket.create_connection = refuse
before = dict(os.environ), threading.active_count(), sorted(os.listdir())
writes = []
sys.addaudithook(lambda event, args: writes.append(args[0]) if event == "open" and isinstance(args[1], str)
                 and set(args[1]) & set("wax+") else None)
for name in {modules}:
    importlib.import_module(name)
assert before == (dict(os.environ), threading.active_count(), sorted(os.listdir())), "an effect at import"
print(json.dumps([sorted(sys.modules), [str(name) for name in writes]]))
"""


def imported(modules: list[str], folder: Path, warm: tuple[str, ...] = ()) -> tuple[set[str], str]:
    """The modules that are there after importing these in a fresh interpreter, and what that printed."""
    code = WATCH.format(paths=PATHS, modules=modules, warm=list(warm))
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}  # neither settings nor credentials
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    there, written = json.loads(last)
    assert not written, f"wrote {written}"
    return set(there), "\n".join(said) + done.stderr


def test_every_module_can_be_imported_without_effect(tmp_path: Path) -> None:
    there, said = imported(MODULES, tmp_path)
    assert set(MODULES) <= there
    assert said == "", "it said something"


def test_a_tick_that_finds_nothing_pays_for_no_aws_client_and_no_command_line(
    tmp_path: Path,
) -> None:
    there, _ = imported(["handler"], tmp_path)
    assert "fencepost.bootstrap" in there
    assert not there & {"boto3", "botocore", "typer", "rich", "requests"}


@pytest.mark.parametrize("name", ["fencepost.store.postgres", "psycopg"])
def test_producers_and_the_worker_share_a_package_but_not_its_cost(
    name: str, tmp_path: Path
) -> None:
    there, _ = imported(["fencepost"], tmp_path)
    assert name not in there
