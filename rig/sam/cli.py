"""The SAM command line: builds what would be deployed, and invokes it in containers."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rig.ground import ROOT, free_port, leashed, wait_until
from rig.sam.engine import Engine
from rig.sam.image import ARCHITECTURE, VERSION

SAM = ROOT / ".cache" / "sam-venv" / "bin" / "sam"  # an environment of its own (see the Makefile)
BUILD = ROOT / ".cache" / "sam-local" / "build"  # not what `make sam-check` built to be deployed
ADDED = ("AWS_ENDPOINT_URL",)  # what a local function needs and a deployed one must not have
INVOKE_SECONDS = 300.0
LISTENS_SECONDS = 60.0
PARAMETERS = ["--parameter-overrides", f"Architecture={ARCHITECTURE}"]
CONFIG = ["--config-file", str(ROOT / "samconfig.toml")]

Environments = Mapping[str, Mapping[str, str]]  # of each function, by its name in the template


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What came of one invocation. Its exit code says nothing: it is 0 after a timeout too."""

    answer: Any  # what the function returned; None where nothing was returned
    log: str
    took_seconds: float


class Sam:
    """`sam` with the engine it is to use, and with no credentials of whoever runs it."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._template = BUILD / "local.yaml"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            **engine.environment,
            "PATH": f"{interpreter_folder()}{os.pathsep}{os.environ['PATH']}",
            "ARCHITECTURE": ARCHITECTURE,
            "SAM_CLI_TELEMETRY": "0",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def build(self) -> None:
        """Raises RuntimeError with the end of what SAM said."""
        command = [str(SAM), "build", "--build-dir", str(BUILD), *PARAMETERS]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"sam build: {(done.stderr or done.stdout).strip()[-800:]}")
        self._write_template()

    def invoke(self, function: str, event: Path, environments: Environments) -> Said:
        began = time.monotonic()
        done = subprocess.run(
            self._command("invoke", environments, function, "--event", str(event)),
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=INVOKE_SECONDS,
        )
        took = time.monotonic() - began
        return Said(answer=_answer(done.stdout), log=done.stderr + done.stdout, took_seconds=took)

    @contextlib.contextmanager
    def lambda_endpoint(self, environments: Environments) -> Iterator[str]:
        """`sam local start-lambda`: the URL of something that answers like Lambda's own."""
        port = free_port()
        command = self._command("start-lambda", environments, "--port", str(port))
        with (self._folder / "start-lambda.log").open("ab") as log:
            started = subprocess.Popen(
                leashed(command, signal.SIGINT, parent=str(os.getpid())),
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(lambda: _listens(port), LISTENS_SECONDS, "sam local start-lambda")
            yield f"http://127.0.0.1:{port}"
        finally:
            started.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(30)
            started.kill()
            started.wait()

    def log(self) -> str:
        return (self._folder / "start-lambda.log").read_text(errors="replace")

    def _command(self, name: str, environments: Environments, *arguments: str) -> list[str]:
        file = self._folder / "env.json"
        file.write_text(json.dumps(environments))
        options = ["--template", str(self._template), "--env-vars", str(file), *CONFIG, *PARAMETERS]
        return [str(SAM), "local", name, *arguments, *options, *self._engine.add_host]

    def _write_template(self) -> None:
        """What was built, with names for what is added: SAM passes no variable that the template does not name."""
        template = yaml.safe_load((BUILD / "template.yaml").read_text())
        template["Globals"]["Function"]["Environment"]["Variables"] |= dict.fromkeys(ADDED, "")
        self._template.write_text(yaml.safe_dump(template, sort_keys=False))


def _answer(stdout: str) -> Any:
    """What the function returned: the last line that is JSON. A timeout returns nothing."""
    for line in reversed(stdout.splitlines()):
        with contextlib.suppress(ValueError):
            return json.loads(line)
    return None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def interpreter_folder() -> Path:
    """Where the function's Python is. A shim of pyenv is there for every version and works for one. Raises
    RuntimeError where there is none."""
    name = f"python{VERSION}"
    if (found := shutil.which(name)) and _runs(found):
        return Path(found).parent
    for folder in sorted((Path.home() / ".pyenv" / "versions").glob(f"{VERSION}*/bin")):
        if _runs(str(folder / name)):
            return folder
    there = f"{found} does not run" if found else "there is none"
    raise RuntimeError(f"sam build needs {name} on the PATH: {there}")


def _runs(interpreter: str) -> bool:
    try:
        return not subprocess.run([interpreter, "--version"], capture_output=True).returncode
    except OSError:
        return False
