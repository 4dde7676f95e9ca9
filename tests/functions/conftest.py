"""The deliver function as Lambda would call it: a real database, a real receiver of webhooks, a fake context."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fencepost import bootstrap
from rig.receiver import SECRET, LocalProvider, local_provider
from tests.functions.backfill_ground import load

ROOT = Path(__file__).parents[2]
INSTALLATION = "test"


@dataclass
class Context:
    """What the function asks of Lambda's context."""

    seconds: float = 30.0
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return round(self.seconds * 1000)


@dataclass
class Ground:
    """One test's database and provider."""

    connection: psycopg.Connection
    provider: LocalProvider

    def channel(self, **changes: Any) -> None:
        channel = {
            "name": "way",
            "sender": "webhook",
            "settings": {"allow_http": True, "allow_private_networks": True},
            "secret_reference": "env:WEBHOOK_SECRET",
            "on_uncertain": "resend",
            "slots": 10,
            **changes,
        }
        self.connection.execute("select fencepost.bind(%s)", (INSTALLATION,))
        words = json.dumps([channel])
        self.connection.execute("select fencepost.channel_apply(%s::jsonb)", (words,))

    def enqueue(self, count: int, behaviour: str = "ok") -> None:
        for number in range(count):
            subject = f"{behaviour}-{number}"
            recipient = f"{self.provider.url}/dedupes/{behaviour}/1/{subject}"
            payload = json.dumps({"title": "payload-secret", "body": subject})
            self.connection.execute(
                "select fencepost.enqueue('way', %s, %s::jsonb)", (recipient, payload)
            )

    def number(self, query: str) -> int:
        found = self.connection.execute(query.encode()).fetchone()
        assert found is not None
        return int(found[0])


@pytest.fixture
def ground(connection: psycopg.Connection, tmp_path: Path) -> Iterator[Ground]:
    with local_provider(tmp_path) as provider:
        yield Ground(connection, provider)


@pytest.fixture
def environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A sandbox's environment; the worker of this test ends with it."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("FENCEPOST_INSTALLATION", INSTALLATION)
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    cold()
    yield
    end_sandbox()


def end_sandbox() -> None:
    """The next invocation is another sandbox's first."""
    if bootstrap.lambda_worker.cache_info().currsize:
        bootstrap.lambda_worker().close()
    cold()


def cold() -> None:
    """As in a new sandbox: no worker yet, and a logger that will find this test's output and level."""
    bootstrap.lambda_worker.cache_clear()
    if bootstrap.lambda_commands.cache_info().currsize:
        bootstrap.lambda_commands().close()
    bootstrap.lambda_commands.cache_clear()
    bootstrap.lambda_callbacks.cache_clear()
    logging.Logger.manager.loggerDict.pop("fencepost", None)


@pytest.fixture
def deliver(environment: None) -> Callable[..., dict[str, Any]]:
    """The handler, loaded from its file as Lambda does."""
    return load("deliver")


@pytest.fixture
def backfill(environment: None) -> Callable[..., dict[str, Any]]:
    """The same for the function of commands."""
    return load("backfill")


@pytest.fixture
def callback(environment: None) -> Callable[..., dict[str, Any]]:
    """And for the function that providers call."""
    return load("callback")


@pytest.fixture
def tick() -> dict[str, Any]:
    event: dict[str, Any] = json.loads((ROOT / "events" / "tick.json").read_text())
    return event
