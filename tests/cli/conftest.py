"""The command as people run it: a process of its own against a real database."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fencepost_cli.main import answer
from tests.store.postgres_bench import PostgresBench

MODULE = (sys.executable, "-m", "fencepost_cli")
SCRIPT = (str(Path(sys.executable).parent / "fencepost"),)
TIMEOUT_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


Fencepost = Callable[..., Said]


def environment(database_url: str | None, **more: str) -> dict[str, str]:
    """Ours, without what a developer may have set for himself."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if name != "DATABASE_URL" and not name.startswith("FENCEPOST_")
    }
    return {**ours, **({"DATABASE_URL": database_url} if database_url else {}), **more}


def call(
    database_url: str | None,
    *words: str,
    stdin: bytes = b"",
    command: tuple[str, ...] = MODULE,
    more: Mapping[str, str] = {},
) -> Said:
    done = subprocess.run(
        [*command, *words],
        input=stdin,
        capture_output=True,
        env=environment(database_url, **more),
        timeout=TIMEOUT_SECONDS,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fencepost:
    """The same command in this process: for what needs no process of its own. `database_url` first, or None."""

    def ours(database_url: str | None, *words: str) -> Said:
        monkeypatch.delenv("DATABASE_URL", raising=False)
        monkeypatch.delenv("FENCEPOST_INSTALLATION", raising=False)
        if database_url is not None:
            monkeypatch.setenv("DATABASE_URL", database_url)
        code = answer(words)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return ours


@pytest.fixture
def fencepost(database_url: str) -> Fencepost:
    """Call a command against this test's database."""

    def ours(*words: str, **particulars: Any) -> Said:
        return call(database_url, *words, **particulars)

    return ours


@pytest.fixture
def channels_file(tmp_path: Path) -> Path:
    file = tmp_path / "channels.toml"
    file.write_text(
        '[channel.hook]\nsender = "webhook"\nsecret = "env:NOWHERE"\non_uncertain = "hold"\n'
    )
    return file


@pytest.fixture
def hook(fencepost: Fencepost, channels_file: Path) -> str:
    """A database bound to `test` with one open channel, whose name this is."""
    assert fencepost("bind", "test").code == 0
    assert fencepost("channel", "apply", str(channels_file)).code == 0
    return "hook"


@pytest.fixture
def bench(database_url: str) -> Iterator[PostgresBench]:
    """A database bound to `test` with channels, and runs to play with."""
    with PostgresBench(database_url) as opened:
        yield opened
