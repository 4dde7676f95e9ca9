"""What holds for every command: exit codes, one line of trouble, quick help, no secret."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import MODULE, SCRIPT, Fencepost, call, environment

AWAY = "postgresql://ann:hidden@127.0.0.1:1/none"
EVERY_COMMAND = [
    ("migrate",),
    ("bind", "test"),
    ("channel", "list"),
    ("channel", "pause", "hook", "--reason", "x"),
    ("channel", "resume", "hook"),
    ("enqueue", "-"),
    ("status",),
    ("explain", "1"),
    ("cancel", "1"),
    ("redrive", "1"),
    ("uncertain", "resolve", "1", "--dead", "--why", "x"),
    ("uncertain", "list"),
    ("unregistered", "list"),
    ("unregistered", "resolve", "--channel", "web", "--true"),
    ("quarantine", "--why", "x", "--yes"),
    ("run", "--installation", "test"),
]


def one_line(text: str) -> bool:
    return text.startswith("fencepost: ") and text.count("\n") == 1 and text.endswith("\n")


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=" ".join)
def test_without_a_database_url_it_is_a_matter_of_usage(
    inline: Fencepost, words: tuple[str, ...]
) -> None:
    said = inline(None, *words)
    assert said.code == 2
    assert one_line(said.err), said.err
    assert "DATABASE_URL is not set" in said.err


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=" ".join)
def test_a_database_that_is_away_is_exit_code_3_in_one_line(
    inline: Fencepost, words: tuple[str, ...]
) -> None:
    said = inline(AWAY, *words)
    assert said.code == 3, said.err
    assert one_line(said.err), said.err
    assert "hidden" not in said.err
    assert said.out == ""


def test_the_database_url_of_the_command_line_outranks_the_environment() -> None:
    said = call("postgresql://127.0.0.1:2/env", "status", "--database-url", AWAY)
    assert "port 1 " in said.err


@pytest.mark.parametrize(
    "words", [("explain",), ("cancel",), ("uncertain", "resolve", "--dead", "--why", "x")]
)
def test_no_notification_has_a_number_that_large(inline: Fencepost, words: tuple[str, ...]) -> None:
    said = inline(AWAY, *words, str(2**63))
    assert said.code == 2, said.err
    assert one_line(said.err), said.err


@pytest.mark.parametrize(
    "url",
    [
        "postgres:/ann:hidden@host/name",
        "postgresql://ann:hidden@[::1/name",
        "postgresql://ann:hidden/x@127.0.0.1/name",
        "postgresql://ann:x@hidden@127.0.0.1/name",
        "postgresql://ann:x:hidden@127.0.0.1:1/name",
    ],
)
@pytest.mark.parametrize("words", [("status",), ("run", "--once", "--installation", "test")])
def test_a_connection_string_that_cannot_be_read_is_never_quoted(
    inline: Fencepost, url: str, words: tuple[str, ...]
) -> None:
    said = inline(url, *words)
    assert said.code in (2, 3), said.err
    assert one_line(said.err), said.err
    assert "hidden" not in said.err


def test_a_connection_string_that_cannot_be_read_is_not_repeated() -> None:
    said = call("postgres:/ann:hidden@host/name", "status")
    assert (said.code, "hidden" in said.err) == (2, False)
    assert one_line(said.err)


@pytest.mark.parametrize(
    "words",
    [("nonsense",), ("bind",), ("explain", "seven"), ("explain", "0"), ("status", "--nonsense")],
    ids=" ".join,
)
def test_a_wrong_command_line_is_exit_code_2_in_one_line(
    inline: Fencepost, words: tuple[str, ...]
) -> None:
    said = inline(AWAY, *words)
    assert said.code == 2
    assert one_line(said.err), said.err


def test_no_command_shows_the_help() -> None:
    said = call(None)
    assert said.code == 2
    assert "Commands:" in said.err


@pytest.mark.parametrize("command", [MODULE, SCRIPT], ids=["module", "script"])
def test_the_command_is_there_both_ways(command: tuple[str, ...]) -> None:
    said = call(AWAY, "--help", command=command)
    assert (said.code, said.err) == (0, "")
    assert "Commands:" in said.out


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=" ".join)
def test_help_never_shows_the_database_url(inline: Fencepost, words: tuple[str, ...]) -> None:
    names = words[:2] if words[0] in ("channel", "uncertain", "unregistered") else words[:1]
    said = inline(AWAY, *names, "--help")
    assert said.code == 0
    assert "--database-url" in said.out
    assert "hidden" not in said.out


def test_help_is_quick_because_it_loads_no_driver() -> None:
    probe = (
        "import sys; from fencepost_cli.main import answer; answer(['--help']); "
        "loaded = {'psycopg', 'rich', 'asyncio', 'httpunk'} & set(sys.modules); "
        "sys.exit(f'loaded {loaded}' if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.postgres
def test_a_database_that_is_not_migrated_is_exit_code_4(server_url: str) -> None:
    said = call(server_url, "status")
    assert said.code == 4
    assert "fencepost migrate" in said.err


@pytest.mark.postgres
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("channel", "list", "--json"), ("status",)], ids=" ".join)
def test_whoever_reads_the_output_may_go_away(
    database_url: str, hook: str, words: tuple[str, ...], unbuffered: str
) -> None:
    """`fencepost … | head`: no traceback, an exit code of its own."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*MODULE, *words],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**environment(database_url), "PYTHONUNBUFFERED": unbuffered},
        timeout=240,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.postgres
def test_control_characters_of_others_do_not_reach_the_terminal(
    fencepost: Fencepost, hook: str
) -> None:
    assert fencepost("channel", "pause", hook, "--reason", "\x1b[31mred\nalert").code == 0
    for words in (("status",), ("channel", "list")):
        out = fencepost(*words).out
        assert "\x1b" not in out
        assert "red alert" in out


@pytest.mark.postgres
def test_a_locale_without_unicode_is_no_obstacle(fencepost: Fencepost, hook: str) -> None:
    """Neither for what is shown nor for what is said: bytes that are no UTF-8 are refused in one line."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert fencepost("channel", "pause", hook, "--reason", "Störung").code == 0
    said = fencepost("status", more={**plain, "PYTHONIOENCODING": "ascii"})
    assert (said.code, said.err) == (0, "")
    assert "St\\xf6rung" in said.out
    said = fencepost("channel", "pause", hook, "--reason", "Störung", more=plain)
    assert said.code == 1
    assert one_line(said.err)
