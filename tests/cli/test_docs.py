"""docs/cli.md says nothing that the command does not know, and leaves out no command."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from fencepost.core.budget import Timing
from fencepost.settings import DURATIONS
from fencepost_cli.channel_file import read_channels
from fencepost_cli.exit_code import ExitCode
from fencepost_cli.main import app

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
EXAMPLES = re.findall(r"^    (?:.*\| )?(fencepost [^#\n]+)", DOCS.read_text(), re.MULTILINE)


def options_of(words: list[str]) -> set[str]:
    """The options of the command these words call. Raises KeyError where there is no such command."""
    command: Any = typer.main.get_command(app)
    for word in words:
        if not hasattr(command, "commands"):
            break
        command = command.commands[word]
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_command_in_it_exists_with_every_option(example: str) -> None:
    _, *words = shlex.split(example)
    said = {word for word in words if word.startswith("--")}
    assert said <= options_of(words)


def test_no_command_is_left_out() -> None:
    command: Any = typer.main.get_command(app)
    for name, one in command.commands.items():
        for full in (
            [f"{name} {sub}" for sub in one.commands] if hasattr(one, "commands") else [name]
        ):
            assert any(example.startswith(f"fencepost {full}") for example in EXAMPLES), full


def test_every_exit_code_is_told() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS.read_text(), re.MULTILINE)}
    assert told == set(ExitCode)


def test_every_default_of_a_duration_is_told() -> None:
    told = dict(re.findall(r"`(FENCEPOST_\w+_SECONDS)` \(([0-9.]+)\)", DOCS.read_text()))
    timing = Timing()
    assert told == {name: f"{getattr(timing, field):g}" for field, name in DURATIONS.items()}


def test_its_channel_file_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    file = tmp_path / "channels.toml"
    file.write_text(block)
    (channel,) = read_channels(file)
    assert channel["name"] == "push"
    table = tomllib.loads(block)["channel"]["push"]
    assert len(channel["policy"]) == len(table["policy"])
