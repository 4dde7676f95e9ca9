"""docs/senders.md: every example is a channel that can be applied, and every setting in it exists."""

import re
from pathlib import Path

import msgspec
import pytest

from fencepost.senders.registry import kind_of
from fencepost_cli.channel_file import read_channels

PAGE = (Path(__file__).parents[2] / "docs" / "senders.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
SECTIONS = re.findall(r"^## .*?\(`([a-z_]+)`\)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_channel(example: str, tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    file.write_text(example)
    for channel in read_channels(file):
        assert channel["on_uncertain"], "whoever copies it must see the choice"


@pytest.mark.parametrize(("kind", "section"), SECTIONS, ids=[kind for kind, _ in SECTIONS])
def test_every_setting_is_told_and_no_other(kind: str, section: str) -> None:
    settings = kind_of(kind).settings
    assert settings is not None
    known = {field.encode_name for field in msgspec.structs.fields(settings)}
    table = re.search(r"^\| setting \|.*?\n\n", section, re.DOTALL | re.MULTILINE)
    cells = re.findall(r"^\| (`.*?) \|", table[0], re.MULTILINE) if table else []
    told = {name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)}
    assert told == known
