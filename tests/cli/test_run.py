"""`fencepost run` against a provider next door: it delivers, and a signal leaves nothing leased."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rig.receiver import SECRET, LocalProvider, local_provider
from tests.cli.conftest import MODULE, Fencepost, environment

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
MORE = {"HOOK_SECRET": SECRET, "FENCEPOST_INSTALLATION": "test"}
CHANNEL = """
[channel.hook]
sender = "webhook"
secret = "env:HOOK_SECRET"
on_uncertain = "hold"
settings = { allow_http = true, allow_private_networks = true }
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    with local_provider(tmp_path) as started:
        yield started


@pytest.fixture
def ready(fencepost: Fencepost, tmp_path: Path) -> None:
    file = tmp_path / "hook.toml"
    file.write_text(CHANNEL)
    assert fencepost("bind", "test").code == 0
    assert fencepost("channel", "apply", str(file)).code == 0


def enqueued(fencepost: Fencepost, provider: LocalProvider, behaviour: str, count: int) -> None:
    lines = (
        {
            "channel": "hook",
            "recipient": f"{provider.url}/plain/{behaviour}/1/{behaviour}-{number}",
            "payload": {"title": "x"},
        }
        for number in range(count)
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    said = fencepost("enqueue", "-", stdin=text.encode())
    assert said.code == 0, said.err


def number(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def wait_until(seen: Callable[[], bool], *, seconds: float = 240.0) -> None:
    """Wait for an observed condition, with a bound."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if seen():
            return
        pause.wait(0.05)
    raise AssertionError(f"not seen within {seconds} s")


REFUSE_CLAIMS = """
create function public.refuse() returns trigger language plpgsql as $f$
begin raise exception 'gone' using errcode = 'undefined_table'; end $f$;
create trigger refuse before update on fencepost.queue for each row execute function public.refuse()"""
LEASED = "select count(*) from fencepost.queue where run_id <> fencepost.nobody()"
DELIVERED = "select count(*) from fencepost.closed where kind = 'delivered'"


@pytest.mark.usefixtures("ready")
def test_once_delivers_what_is_due_and_ends(
    fencepost: Fencepost, provider: LocalProvider, connection: psycopg.Connection
) -> None:
    enqueued(fencepost, provider, "ok", 30)
    said = fencepost("run", "--json", more=MORE)
    assert said.code == 0, said.err
    summary = json.loads(said.out.splitlines()[0])
    assert (summary["delivered"], summary["drained"]) == (30, True)
    assert number(connection, DELIVERED) == 30
    said = fencepost("run", more=MORE)
    assert said.out.endswith("idle: nothing due that may be sent now\n")


@pytest.mark.usefixtures("ready")
def test_a_channel_that_cannot_be_sent_on_is_named_and_no_success(
    fencepost: Fencepost, provider: LocalProvider, connection: psycopg.Connection
) -> None:
    enqueued(fencepost, provider, "ok", 1)
    said = fencepost("run", more={**MORE, "HOOK_SECRET": ""})
    assert said.code == 1
    assert "channel_skipped channel=hook reason=env:HOOK_SECRET is missing or empty" in said.err
    [row] = fencepost("status", "--json").json["channels"]
    assert row["skip_reason"] == "env:HOOK_SECRET is missing or empty"
    assert row["skipped_at"] is not None
    waiting = "env:HOOK_SECRET is missing or empty"
    assert f"): {waiting}" in fencepost("status").out
    assert f"none that looked could ({waiting}); then" in fencepost("explain", "1").out
    assert fencepost("run", more=MORE).code == 0
    assert fencepost("status", "--json").json["channels"][0]["skip_reason"] is None
    assert number(connection, DELIVERED) == 1


@pytest.mark.usefixtures("ready")
def test_a_database_that_refuses_the_claim_is_not_called_drained(
    fencepost: Fencepost, provider: LocalProvider, connection: psycopg.Connection
) -> None:
    enqueued(fencepost, provider, "ok", 1)
    connection.execute(REFUSE_CLAIMS)
    connection.commit()
    said = fencepost("run", "--json", more=MORE)
    assert said.code == 1
    assert (said.json["ended"], said.json["drained"]) == ("refused", False)
    assert said.err.startswith("fencepost: WARNING exchange_trouble failure=refused")


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_a_signal_ends_it_cleanly_with_nothing_leased(
    database_url: str,
    fencepost: Fencepost,
    provider: LocalProvider,
    connection: psycopg.Connection,
    sent: signal.Signals,
) -> None:
    enqueued(fencepost, provider, "slow", 5)
    running = subprocess.Popen(
        [*MODULE, "run", "--every", "1h"],
        env=environment(database_url, **MORE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: number(connection, LEASED) > 0 or number(connection, DELIVERED) > 0)
    running.send_signal(sent)
    _, err = running.communicate(timeout=240)
    assert (running.returncode, err) == (0, b"")
    assert number(connection, LEASED) == 0
    assert number(connection, DELIVERED) == 5, "what was being sent was not settled"


@pytest.mark.usefixtures("ready")
def test_a_signal_wakes_it_while_it_waits(
    database_url: str, connection: psycopg.Connection
) -> None:
    running = subprocess.Popen(
        [*MODULE, "run", "--every", "1h", "--json"],
        env=environment(database_url, **MORE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["ended"] == "idle"
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=240)
    assert (running.returncode, err) == (0, b"")


@pytest.mark.usefixtures("ready")
def test_another_installation_is_refused(
    fencepost: Fencepost, provider: LocalProvider, connection: psycopg.Connection
) -> None:
    enqueued(fencepost, provider, "ok", 1)
    for words in (("run",), ("run", "--every", "1s")):
        said = fencepost(*words, "--installation", "staging", more=MORE)
        assert said.code == 1
        assert "belongs to installation test" in said.err
        assert said.err.count("\n") == 1
    assert number(connection, DELIVERED) == 0


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("words", [(), ("--every", "1s", "--for", "60s")])
def test_another_installation_is_refused_although_nothing_is_due(
    fencepost: Fencepost, words: tuple[str, ...]
) -> None:
    said = fencepost("run", *words, "--installation", "staging", more=MORE)
    assert said.code == 1
    assert said.err == (
        "fencepost: this database belongs to installation test, and FENCEPOST_INSTALLATION is staging\n"
    )
    assert fencepost("run", more=MORE).code == 0


@pytest.mark.parametrize(
    ("words", "more", "fault"),
    [
        (("run",), {}, "FENCEPOST_INSTALLATION is not set"),
        (("run", "--for", "5s"), MORE, "longer than one send"),
        (("run", "--once", "--every", "5s"), MORE, "not both"),
        (("run", "--every", "often"), MORE, "no duration"),
        (("run", "--every", "0s"), MORE, "without a pause"),
        (("run",), {**MORE, "FENCEPOST_LEASE_SECONDS": "3"}, "FENCEPOST_LEASE_SECONDS (3)"),
    ],
)
def test_wrong_settings_are_a_matter_of_usage(
    fencepost: Fencepost, words: tuple[str, ...], more: dict[str, str], fault: str
) -> None:
    said = fencepost(*words, more=more)
    assert said.code == 2
    assert fault in said.err
    assert said.err.count("\n") == 1


@pytest.mark.usefixtures("ready")
def test_a_misspelled_channel_is_refused_and_not_idle(fencepost: Fencepost) -> None:
    said = fencepost("run", "--once", "--channel", "hoook", more=MORE)
    assert said.code == 1
    assert "hoook" in said.err


def test_a_database_that_is_not_migrated_is_told_like_by_every_other_command(
    fencepost: Fencepost, connection: psycopg.Connection
) -> None:
    connection.execute("drop schema fencepost cascade")
    said = fencepost("run", more=MORE)
    assert said.code == 4, said.err
    assert "not migrated for this version: run fencepost migrate" in said.err


def test_a_role_that_is_not_there_is_no_database_that_is_away(
    database_url: str, inline: Fencepost
) -> None:
    said = inline(make_conninfo(database_url, user="nobody_of_that_name", password="x"), "status")
    assert said.code == 1, said.err
    assert "refuses the login" in said.err
