"""Which version, before anything else is asked for."""

from importlib.metadata import version

from tests.cli.conftest import Fencepost


def test_it_says_its_version_without_a_database(inline: Fencepost) -> None:
    said = inline(None, "--version")
    assert (said.code, said.out, said.err) == (0, f"fencepost {version('fencepost')}\n", "")


def test_the_list_of_commands_cuts_no_sentence_off(inline: Fencepost) -> None:
    assert "..." not in inline(None, "--help").out.partition("Commands:")[2]
