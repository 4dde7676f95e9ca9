"""Everything an operator does works as the role made for it, which can write no table."""

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.cli.conftest import Fencepost
from tests.store.bench import Worker, dead
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
LINE = b'{"channel": "web", "recipient": "r", "payload": {"title": "x"}}\n'


def test_the_operators_role_suffices(
    bench: PostgresBench, fencepost: Fencepost, channels_file: Path
) -> None:
    bench.enqueue(4)
    worker = Worker(bench)
    parked, *_ = claimed = worker.claim(2)
    worker.settle(*(dead(one.held) for one in claimed))
    url = ("--database-url", make_conninfo(bench.url, user="fencepost_operator"))
    for words in (
        ("bind", "test"),
        ("channel", "apply", str(channels_file)),
        ("channel", "list"),
        ("channel", "pause", "web", "--reason", "x"),
        ("channel", "resume", "web"),
        ("enqueue", "-"),
        ("status", "--exact"),
        ("explain", str(parked.id), "--show-recipient", "--show-payload"),
        ("redrive", str(parked.id)),
        ("redrive", "--all", "--yes"),
        ("cancel", str(parked.id), "--dry-run"),
        ("cancel", "--channel", "web", "--yes"),
        ("uncertain", "resolve", "--all", "--delivered", "--why", "x", "--yes"),
        ("uncertain", "list"),
        ("unregistered", "list", "--show-recipient"),
        ("unregistered", "resolve", "--channel", "web", "--true"),
        ("quarantine", "--why", "x", "--yes"),
    ):
        said = fencepost(*words, *url, stdin=LINE)
        assert (said.code, said.err) == (0, ""), words


def test_it_cannot_write_a_table(bench: PostgresBench) -> None:
    url = make_conninfo(bench.url, user="fencepost_operator")
    with (
        psycopg.connect(url, autocommit=True) as operator,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        operator.execute("update fencepost.channel set pause_reason = 'x'")
