"""`python -m demo`: its exit code is its word, and whatever stops it stops all that it started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rig.ground import ROOT, children_of, state_of, wait_until

COMMAND = [sys.executable, "-m", "demo", "--count", "1500", "--runtimes", "4"]


@pytest.fixture
def demo(server_url: str, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "DATABASE_URL": server_url, "TMPDIR": str(tmp_path)}
    started = subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with started:
        yield started
        started.kill()
    with psycopg.connect(server_url, autocommit=True) as admin:  # one that was killed left it
        name = sql.Identifier(f"fencepost_demo_{started.pid}")
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(name))


def test_every_guarantee_is_kept_and_both_accidents_happen(demo: "subprocess.Popen[str]") -> None:
    said, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, said
    assert "BROKEN" not in said
    assert said.count("✓") == 17, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_it(demo: "subprocess.Popen[str]", number: signal.Signals) -> None:
    assert demo.stdout is not None
    said = []
    for line in demo.stdout:
        said.append(line)
        if "SIGSTOP in mid-send" in line:
            break
    else:
        raise AssertionError("".join(said))
    started = family(demo.pid)
    assert len(started) >= 6, "four emulators, an interpreter at least, the provider"
    demo.send_signal(number)
    demo.communicate(timeout=100)
    assert demo.returncode == (-number if number is signal.SIGKILL else 130)
    gone = ("Z", None)
    wait_until(lambda: all(state_of(pid) in gone for pid in started), 10, f"{started} to be gone")


def family(pid: int) -> list[int]:
    children = children_of(pid)
    return children + [grandchild for child in children for grandchild in family(child)]
