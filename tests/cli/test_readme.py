"""The README's way from an empty database to an explained delivery, walked as it is written."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.receiver import SECRET, LocalProvider, local_provider
from tests.cli.conftest import Fencepost, Said

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
README = (Path(__file__).parents[2] / "README.md").read_text()
OWN = README.partition("## On your own PostgreSQL")[2].partition("## On AWS")[0]
ITS_RECEIVER = "http://127.0.0.1:8080"
MORE = {"FENCEPOST_INSTALLATION": "production", "ORDERS_WEBHOOK_SECRET": SECRET}


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", OWN, re.DOTALL)
    return str(found)


def commands() -> list[list[str]]:
    """The words of every `fencepost …` line of its shell blocks, in order."""
    lines = re.findall(r"^fencepost ([^#\n]+)", OWN, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    with local_provider(tmp_path) as started:
        yield started


@pytest.fixture
def walked(
    fencepost: Fencepost, provider: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Said]:
    """What each command answered. The receiver's port and secret are this test's."""
    monkeypatch.chdir(tmp_path)
    Path("channels.toml").write_text(block("toml"))
    Path("notifications.jsonl").write_text(block("json").replace(ITS_RECEIVER, provider.url))
    return {words[0]: fencepost(*words, more=MORE) for words in commands()}


def test_every_step_works_and_says_what_the_readme_says(walked: dict[str, Said]) -> None:
    steps = ["migrate", "bind", "channel", "enqueue", "run", "status", "explain"]
    assert list(walked) == steps
    assert {name: said.code for name, said in walked.items()} == dict.fromkeys(steps, 0)
    assert walked["enqueue"].out == "3 enqueued\n"
    counted = set(walked["run"].out.strip().partition(": ")[2].split(", "))
    assert {"3 claimed", "1 delivered", "1 retried", "1 parked", "1 doubt"} <= counted
    assert "it may have been accepted" in walked["explain"].out
    assert "is sent again with the same idempotency key" in walked["explain"].out


def test_its_order() -> None:
    headings = re.findall(r"^## (.*)", README, re.MULTILINE)
    assert headings == [
        "How a notification is claimed, sent and closed",
        "The tree",
        "On your own PostgreSQL",
        "On AWS",
        "What comes next",
    ]
    assert README.index("make demo") < README.index("make test") < README.index("## How")


def test_every_page_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^)#:]+)\)", README)
    root = Path(__file__).parents[2]
    assert pages
    assert [page for page in pages if not (root / page).is_file()] == []
