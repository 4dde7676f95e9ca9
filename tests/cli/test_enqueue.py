"""`fencepost enqueue`: every bad line named, every good line kept, memory bounded."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cli.conftest import MODULE, Fencepost, environment

pytestmark = pytest.mark.postgres
HUGE = 5 * 1024 * 1024


def line(number: int, **words: Any) -> bytes:
    given = {"channel": "hook", "recipient": f"r{number}", "payload": {"title": "hello"}}
    return json.dumps({**given, **words}).encode() + b"\n"


def count(connection: psycopg.Connection) -> int:
    row = connection.execute("select count(*) from fencepost.queue").fetchone()
    assert row is not None
    return int(row[0])


GOOD: dict[str, bytes] = {
    "plain": line(1),
    "every field": line(
        1,
        due_at="2126-01-01T00:00:00Z",
        expires_at="2127-01-01T00:00:00+02:00",
        priority=0,
        dedupe_key="k",
        on_uncertain="resend",
    ),
    "far from UTC": line(1, due_at="2126-01-01T00:00:00+23:59"),
    "durations in words": line(1, delay="5m", ttl="2h"),
    "durations in seconds": line(1, delay=0.5, ttl=3600),
    "a byte order mark": b"\xef\xbb\xbf" + line(1),
    "carriage returns": line(1).replace(b"\n", b"\r\n"),
    "no newline at the end": line(1).rstrip(),
    "blank lines around": b"\n  \n" + line(1) + b"\n",
    "other scripts": line(1, payload={"title": "ご注文 👩🏽‍🚀 e\u0301"}),
}


def test_a_good_line_is_enqueued(
    inline: Fencepost, database_url: str, hook: str, connection: psycopg.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "good.jsonl"
    for number, (case, text) in enumerate(GOOD.items(), 1):
        file.write_bytes(text)
        said = inline(database_url, "enqueue", str(file))
        assert (said.code, said.out, said.err) == (0, "1 enqueued\n", ""), case
        assert count(connection) == number, case


BAD: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{nonsense}\n", "not JSON"),
    "half a line": (b'{"channel": "hook"\n', "not JSON"),
    "no object": (b"[1]\n", "Expected `object`, got `array`"),
    "not UTF-8": (b'{"channel": "hook", "recipient": "\xff", "payload": {}}\n', "not JSON"),
    "a NUL in the recipient": (line(1, recipient="a\0b"), "recipient: holds the character U+0000"),
    "a NUL in the payload": (line(1, payload={"title": "\0"}), "U+0000"),
    "a lone surrogate": (line(1, payload={"title": "\ud800"}), "lone surrogate"),
    "an unknown field": (line(1, recipent="x"), "unknown field `recipent`"),
    "an unknown payload key": (line(1, payload={"titel": "x"}), "payload: unknown key"),
    "no recipient": (b'{"channel": "hook", "payload": {}}\n', "missing required field `recipient`"),
    "an empty recipient": (line(1, recipient=""), "recipient: is missing"),
    "a wrong type": (line(1, priority="high"), "Expected `int | null`, got `str`"),
    "an unknown channel": (line(1, channel="nowhere"), "there is no channel"),
    "no channel": (b'{"recipient": "r", "payload": {}}\n', "channel: is missing"),
    "expired already": (line(1, expires_at="2020-01-01T00:00:00Z"), "expires_at: is past"),
    "no instant": (
        line(1, due_at="9999-12-31T23:59:59-23:59"),
        "due_at: lies outside the years 1 to 9999",
    ),
    "no time zone": (line(1, due_at="2126-01-01T00:00:00"), "due_at: has no time zone"),
    "a wrong duration": (line(1, delay="soon"), "delay: must be seconds"),
    "an endless duration": (line(1, delay=1e300), "delay: must be seconds"),
    "a wrong policy": (line(1, on_uncertain="maybe"), "on_uncertain: must be"),
    "a number beyond all bounds": (
        line(1).replace(b'"hello"', b'"hello", "data": {"n": 1e999}'),
        "out of range",
    ),
    "nested too deeply": (
        line(1).replace(b'"hello"', b'"hello", "data": {"n": ' + b"[" * 9999 + b"]" * 9999 + b"}"),
        "nested too deeply",
    ),
    "a payload over the limit": (
        line(1, payload={"body": "x" * 70_000}),
        "bytes, and channel hook takes",
    ),
    "a huge line": (line(1, payload={"body": "x" * HUGE}), "longer than"),
}


def test_each_bad_line_is_named_and_the_good_ones_are_kept(
    fencepost: Fencepost, hook: str, connection: psycopg.Connection
) -> None:
    """All kinds of bad lines in one file, a good line after each: none spoils its neighbour (G9)."""
    stream = b"".join(bad + line(number) for number, (bad, _) in enumerate(BAD.values()))
    said = fencepost("enqueue", "-", "--json", stdin=stream)
    assert said.code == 1
    assert said.json["enqueued"] == count(connection) == len(BAD)
    assert said.json["refused"] == len(BAD)
    told = {int(one.split()[2].rstrip(":")): one for one in said.err.splitlines()}
    for number, (case, (_, fault)) in enumerate(BAD.items()):
        assert fault in told[2 * number + 1], case
    assert [one["line"] for one in said.json["refused_lines"]] == sorted(told)


def test_what_is_told_of_a_bad_line_holds_no_recipient_and_no_payload(
    fencepost: Fencepost, hook: str
) -> None:
    bad = [
        line(1, recipient="ann@example.org", payload={"title": "PIN 1234", "badge": "PIN 1234"}),
        line(1, recipient="ann@example.org", payload="PIN 1234"),
        line(1, recipient=["ann@example.org"], payload={"title": "PIN 1234"}),
        line(1, recipient="ann@example.org\0", payload={"title": "PIN 1234\ud800"}),
    ]
    said = fencepost("enqueue", "-", "--json", stdin=b"".join(bad))
    assert (said.code, said.json["refused"]) == (1, 4)
    for secret in ("ann@", "PIN"):
        assert secret not in said.out + said.err


def test_an_id_that_may_be_rolled_back_is_told_to_nobody(
    fencepost: Fencepost, hook: str, connection: psycopg.Connection
) -> None:
    twice = line(1, dedupe_key="k") + line(2, dedupe_key="k")
    said = fencepost("enqueue", "-", "--atomic", stdin=twice + b"nonsense\n")
    assert said.code == 1
    assert "line 2: its dedupe_key belongs to a notification, whose content" in said.err
    said = fencepost("enqueue", "-", stdin=twice)
    ((id,),) = connection.execute("select id from fencepost.notification").fetchall()
    assert f"line 2: its dedupe_key belongs to notification {id}, whose content" in said.err


def test_atomic_is_all_or_none(
    fencepost: Fencepost, hook: str, connection: psycopg.Connection
) -> None:
    good = b"".join(line(number) for number in range(2500))
    said = fencepost("enqueue", "-", "--atomic", stdin=good + line(1, channel="nowhere"))
    assert said.code == 1
    assert said.out == "nothing enqueued: 1 bad lines\n"
    assert "line 2501: " in said.err
    assert count(connection) == 0
    said = fencepost("enqueue", "-", "--atomic", stdin=good)
    assert (said.code, count(connection)) == (0, 2500)


def test_a_dedupe_key_makes_saying_it_again_harmless(
    fencepost: Fencepost, hook: str, connection: psycopg.Connection
) -> None:
    first = line(1, dedupe_key="k")
    fencepost("enqueue", "-", stdin=first)
    said = fencepost("enqueue", "-", "--json", stdin=first + line(2, dedupe_key="k"))
    assert said.code == 0
    assert (said.json["enqueued"], said.json["existing"], said.json["differing"]) == (0, 2, 1)
    assert "line 2: its dedupe_key belongs to notification" in said.err
    assert count(connection) == 1


def test_a_default_channel_is_for_lines_that_name_none(fencepost: Fencepost, hook: str) -> None:
    bare = b'{"recipient": "r", "payload": {"title": "x"}}\n'
    assert fencepost("enqueue", "-", "--channel", "hook", stdin=bare).code == 0
    said = fencepost("enqueue", "-", "--channel", "nowhere", stdin=bare + line(2))
    assert (said.code, said.out) == (1, "1 enqueued, 1 bad lines left out\n")


@pytest.mark.parametrize("file", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_told_in_one_line(
    fencepost: Fencepost, tmp_path: Path, file: str
) -> None:
    said = fencepost("enqueue", str(tmp_path / file))
    assert said.code == 1
    assert said.err.count("\n") == 1


def test_an_empty_file_enqueues_nothing(fencepost: Fencepost, hook: str) -> None:
    said = fencepost("enqueue", "-")
    assert (said.code, said.out) == (0, "0 enqueued\n")


def sprinkled(lines: int, every: int) -> Iterator[bytes]:
    for number in range(1, lines + 1):
        yield b"{bad}\n" if number % every == 0 else line(number)


# The peak of the process itself: what getrusage says of a child counts the parent it was forked from.
MEASURED = """
import pathlib, sys
from fencepost_cli.main import answer
code = answer(sys.argv[1:])
status = pathlib.Path("/proc/self/status")
text = status.read_text() if status.exists() else "VmHWM: 0"
print(text.split("VmHWM:")[1].split()[0], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_fifty_thousand_lines_with_bad_ones_sprinkled_in_bounded_memory(
    database_url: str, hook: str, connection: psycopg.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "many.jsonl"
    with file.open("wb") as out:
        out.writelines(sprinkled(50_000, 997))
        out.write(line(1, payload={"body": "x" * (40 * 1024 * 1024)}))  # one that must not be held
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "enqueue", str(file), "--json"],
        capture_output=True,
        env=environment(database_url),
        timeout=900,
    )
    *told_lines, peak_kib = done.stderr.decode().splitlines()
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert (answer["enqueued"], answer["refused"]) == (50_000 - 50, 51)
    assert count(connection) == 50_000 - 50
    told = [int(one.split()[2].rstrip(":")) for one in told_lines]
    assert told == [*range(997, 50_001, 997), 50_001]
    assert int(peak_kib) < 120 * 1024, "the whole file was held in memory"


def test_a_database_that_goes_away_in_mid_file_says_how_far_it_got(
    database_url: str, hook: str, connection: psycopg.Connection
) -> None:
    started = subprocess.Popen(
        [*MODULE, "enqueue", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(database_url),
    )
    assert started.stdin is not None
    started.stdin.write(b"".join(line(number) for number in range(1000)))
    started.stdin.flush()
    wait_until(lambda: count(connection) == 1000)
    connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name = 'fencepost operator' and datname = current_database()"
    )
    out, err = started.communicate(line(1000), timeout=240)
    told = err.decode().splitlines()
    assert started.returncode == 3
    assert "lines 1 to 1000 are done" in told[0]
    assert len(told) == 2
    assert out == b""


@pytest.mark.parametrize("words", [("enqueue", "-"), ("enqueue", "--atomic", "-")], ids=" ".join)
def test_nobody_doubts_what_a_database_that_is_not_migrated_took(
    fencepost: Fencepost, connection: psycopg.Connection, words: tuple[str, ...]
) -> None:
    connection.execute("drop schema fencepost cascade")
    said = fencepost(*words, stdin=line(1))
    told = said.err.splitlines()
    assert said.code == 4, said.err
    assert told[0] == "fencepost: stopped: nothing is enqueued"
    assert "fencepost migrate" in told[-1]


def wait_until(seen: Any, *, seconds: float = 120.0) -> None:
    """Wait for an observed condition, with a bound."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if seen():
            return
        pause.wait(0.05)
    raise AssertionError(f"not seen within {seconds} s")
