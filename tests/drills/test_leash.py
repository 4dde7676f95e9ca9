"""Nothing the rig starts outlives its starter, however that one ends; and a runtime is what it claims to be."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.ground import ROOT, state_of, wait_until
from rig.runtimes import Runtime, RuntimeBusy

HANDLER = """
import os, time

def handler(event, context):
    if "exit" in event:
        os._exit(event["exit"])
    if "sleep" in event:
        open("asleep", "w").close()
        time.sleep(event["sleep"])
    return {"pid": os.getpid(), "left": context.get_remaining_time_in_millis(), **event}
"""
STARTER = """
import sys, threading
from pathlib import Path
from rig.runtimes import Runtime

folder = Path(sys.argv[1])
runtime = Runtime({}, timeout_seconds=60, folder=folder, task_root=folder, handler="plain.handler").start()
runtime.invoke({})
print(runtime.emulator_pid(), runtime.pid(), flush=True)
threading.Thread(target=runtime.invoke, args=({"sleep": 50},)).start()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(HANDLER)
    return tmp_path


@pytest.fixture
def runtime(folder: Path) -> Iterator[Runtime]:
    with Runtime(
        {}, timeout_seconds=8, folder=folder, task_root=folder, handler="plain.handler"
    ) as started:
        yield started


@pytest.mark.parametrize("victim", ["starter", "emulator"])
def test_no_orphan_survives_a_sigkill(folder: Path, victim: str) -> None:
    command = [sys.executable, "-c", STARTER, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        emulator, runtime = map(int, starter.stdout.readline().split())
        wait_until((folder / "asleep").exists, 5, "the handler to be in mid-invocation")
        assert state_of(runtime) not in ("Z", None)
        subprocess.run(["kill", "-KILL", str(starter.pid if victim == "starter" else emulator)])
        wait_until(lambda: state_of(runtime) in ("Z", None), 5, "the runtime to end")
        wait_until(lambda: state_of(emulator) in ("Z", None), 5, "the emulator to end")
        starter.send_signal(signal.SIGKILL)


def test_the_interpreter_stays_warm_and_dies_at_its_timeout(runtime: Runtime) -> None:
    first, second = runtime.invoke({}).summary, runtime.invoke({}).summary
    assert first is not None
    assert second is not None
    assert first["pid"] == second["pid"] == runtime.pid()
    killed = runtime.invoke({"sleep": 60})
    assert (killed.timed_out, killed.summary) == (True, None)
    third = runtime.invoke({}).summary
    assert third is not None
    assert third["pid"] != first["pid"]


def test_a_death_in_mid_invocation_is_told_apart_from_an_error(runtime: Runtime) -> None:
    died = runtime.invoke({"exit": 3})
    assert (died.died, died.timed_out) == (True, False)
    failed = runtime.invoke({"sleep": "x"})
    assert (failed.died, failed.timed_out) == (False, False)
    assert failed.error is not None
    assert failed.error.startswith("TypeError")


def test_a_second_invocation_at_a_time_is_never_sent(runtime: Runtime) -> None:
    with runtime.turn(), pytest.raises(RuntimeBusy):
        runtime.invoke({})


def test_a_frozen_runtime_is_ended_too(folder: Path) -> None:
    with Runtime(
        {}, timeout_seconds=60, folder=folder, task_root=folder, handler="plain.handler"
    ) as runtime:
        runtime.invoke({})
        pid = runtime.freeze()
        assert state_of(pid) == "T"
    wait_until(lambda: state_of(pid) in ("Z", None), 5, "the frozen runtime to end")
