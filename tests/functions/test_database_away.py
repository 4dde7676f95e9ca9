"""The database goes away while messages are being sent: what came of them is not lost (G8)."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
from moto import mock_aws

from fencepost.store.migrate import migrate
from rig.ground import wait_until
from rig.postgres import LocalPostgres, local_postgres
from rig.receiver import LocalProvider, local_provider
from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
SENT = 5


@pytest.fixture
def server() -> Iterator[LocalPostgres]:
    with local_postgres() as started:
        with psycopg.connect(started.url) as connection:
            migrate(connection)
        yield started


@pytest.fixture
def database_url(server: LocalPostgres) -> str:
    """A server of this test's own: it will be stopped."""
    return server.url


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        queue = boto3.resource("sqs").create_queue(QueueName="evidence")
        monkeypatch.setenv("FENCEPOST_QUEUE_URL", queue.url)
        yield queue


def test_what_was_delivered_while_the_database_went_away_is_in_the_queue_and_in_the_log(
    server: LocalPostgres,
    queue: Any,
    deliver: Callable[..., dict[str, Any]],
    tick: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FENCEPOST_SEND_TIMEOUT_SECONDS", "6")
    monkeypatch.setenv("FENCEPOST_LEASE_SECONDS", "12")
    with local_provider(tmp_path) as provider:
        with psycopg.connect(server.url, autocommit=True) as connection:
            ground = Ground(connection, provider)
            ground.channel(slots=4 * SENT)  # a host that has not answered gets a quarter
            ground.enqueue(SENT, "gate")
        accident = threading.Thread(target=database_goes_away, args=(server, provider))
        accident.start()
        summary = deliver(tick, Context(seconds=11.0))
        accident.join()
    assert (summary["ended"], summary["unsaid"], summary["delivered"]) == ("unsaid", SENT, 0)
    (message,) = queue.receive_messages(MaxNumberOfMessages=10)
    command = json.loads(message.body)
    assert command["run"] == summary["run"]
    assert [fact["outcome"] for fact in command["facts"]] == ["delivered"] * SENT
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = [line["evidence"] for line in lines if line.get("action") == "evidence_unsaid"]
    assert said == [message.body]


def database_goes_away(server: LocalPostgres, provider: LocalProvider) -> None:
    """Once all messages wait for their answers: first the database ends, then they are answered."""
    wait_until(lambda: provider.count().arrivals == SENT, 10, "all to be sent")
    server.stop()
    provider.open_gate()
