"""A tick through the whole of it: the function, a real database, a real receiver."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from fencepost import bootstrap
from fencepost.core.budget import ImpossibleTiming
from fencepost.ports import StoreFailed
from fencepost.settings import SettingsError
from tests.functions.conftest import Context, Ground

pytestmark = pytest.mark.postgres
Deliver = Callable[..., dict[str, Any]]
IDLE_WATCH = (
    "Connection._watch_idle"  # of the HTTP engine: reads a kept connection's farewell, says nothing
)


def test_a_tick_delivers_what_is_due_and_sums_it_up(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.enqueue(25)
    ground.enqueue(2, "gone")
    summary = deliver(tick, Context())
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["ended"], summary["drained"]) == ("drained", True)
    assert (summary["claimed"], summary["delivered"], summary["parked"]) == (27, 25, 2)
    assert ground.provider.count().arrivals == 27
    assert ground.number("select count(*) from fencepost.queue") == 0


def test_the_run_its_lines_and_its_tick_are_tied_together(
    ground: Ground, deliver: Deliver, tick: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ground.channel()
    ground.enqueue(1)
    summary = deliver(tick, Context())
    (run, invocation) = ground.connection.execute(
        "select id::text, invocation from fencepost.run"
    ).fetchone() or ("", "")
    assert (run, invocation) == (summary["run"], tick["id"])
    spoken = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = [line for line in spoken if "_aws" in line]
    assert {"claimed", "run_ended"} <= {line.get("action") for line in spoken}
    assert {line["correlation_id"] for line in spoken if "_aws" not in line} == {tick["id"]}
    assert sum(line.get("Delivered", [0])[0] for line in metrics) == 1
    assert {line["run_id"] for line in spoken} == {run}


def test_an_event_without_an_id_is_tied_to_its_request(ground: Ground, deliver: Deliver) -> None:
    ground.channel()
    ground.enqueue(1)
    deliver({}, Context(aws_request_id="request-9"))
    assert ground.number("select count(*) from fencepost.run where invocation = 'request-9'") == 1


def test_an_idle_tick_writes_nothing(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    before = written(ground.connection)
    summary = deliver(tick, Context())
    assert (summary["ended"], summary["claimed"]) == ("idle", 0)
    assert written(ground.connection) == before


def written(connection: psycopg.Connection) -> list[tuple[str, ...]]:
    """Every row of every table of ours, by where it lies and who wrote or locked it: a write moves one of them."""
    tables = connection.execute(
        "select tablename from pg_tables where schemaname = 'fencepost' order by 1"
    ).fetchall()
    found: list[tuple[str, ...]] = []
    for (table,) in tables:
        rows = sql.SQL("select ctid::text, xmin::text, xmax::text from fencepost.{}")
        found += connection.execute(rows.format(sql.Identifier(table))).fetchall()
    return found


def test_warm_invocations_keep_one_connection(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    backends = set()
    for _ in range(3):
        ground.enqueue(2)
        assert deliver(tick, Context())["delivered"] == 2
        backends |= other_backends(ground.connection)
    assert len(backends) == 1


def test_nothing_is_pending_when_the_function_returns(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.enqueue(20, "slow")
    assert deliver(tick, Context())["delivered"] == 20
    assert bootstrap.lambda_worker.cache_info().currsize == 1
    left = asyncio.all_tasks(bootstrap.lambda_worker()._runner.get_loop())
    assert {repr(one.get_coro()).split()[2] for one in left} <= {IDLE_WATCH}, "it would go on later"


def test_a_connection_that_died_between_two_ticks_costs_no_attempt(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.enqueue(2)
    deliver(tick, Context())
    for backend in other_backends(ground.connection):
        ground.connection.execute("select pg_terminate_backend(%s, 5000)", (backend,))
    ground.provider.close_idle()
    ground.enqueue(2, "ok")
    summary = deliver(tick, Context())
    assert (summary["delivered"], summary["retried"], summary["doubt"]) == (2, 0, 0)
    assert ground.number("select max(attempts) from fencepost.closed") == 1


def other_backends(connection: psycopg.Connection) -> set[int]:
    rows = connection.execute(
        "select pid from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    ).fetchall()
    return {int(pid) for (pid,) in rows}


@pytest.mark.parametrize("seconds", [0.0, -5.0, 1.0])
def test_without_time_nothing_is_claimed(
    ground: Ground, deliver: Deliver, tick: dict[str, Any], seconds: float
) -> None:
    ground.channel()
    ground.enqueue(3)
    summary = deliver(tick, Context(seconds=seconds))
    assert (summary["ended"], summary["claimed"], summary["drained"]) == ("no_time", 0, False)
    assert ground.number("select max(fence) from fencepost.queue") == 0


def test_no_personal_data_is_logged(
    ground: Ground,
    deliver: Deliver,
    tick: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    ground.channel()
    for behaviour in ("ok", "gone", "error", "drop"):
        ground.enqueue(2, behaviour)
    deliver(tick, Context())
    out = capsys.readouterr()
    said = out.out + out.err
    assert '"action":"delivered"' in said, "the most talkative level is what is looked at"
    for secret in ("payload-secret", ground.provider.url, "whsec_", "recipient"):
        assert secret not in said


def test_the_database_of_another_installation_is_left_alone(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.enqueue(3)
    ground.connection.execute("update fencepost.installation set name = 'production'")
    with pytest.raises(StoreFailed, match="production"):
        deliver(tick, Context())
    assert ground.provider.count().arrivals == 0


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("DATABASE_URL", "", SettingsError),
        ("FENCEPOST_INSTALLATION", "", SettingsError),
        ("FENCEPOST_LEASE_SECONDS", "1", ImpossibleTiming),
    ],
)
def test_a_bad_setting_is_refused_by_name_before_anything_is_dialled(
    deliver: Deliver,
    tick: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    error: type[Exception],
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(error, match=name):
        deliver(tick, Context())


def test_a_channel_without_its_secret_waits_and_the_others_go_out(
    ground: Ground, deliver: Deliver, tick: dict[str, Any]
) -> None:
    ground.channel()
    ground.channel(name="mute", secret_reference="env:NOWHERE")
    ground.enqueue(3)
    ground.connection.execute("select fencepost.enqueue('mute', 'https://example.com', '{}')")
    summary = deliver(tick, Context())
    assert (summary["delivered"], summary["skipped_channels"]) == (3, 1)
    assert ground.number("select count(*) from fencepost.queue where fence = 0") == 1
