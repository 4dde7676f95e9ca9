"""The deploy step: a real database, a CloudFormation that waits, and a real runtime."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fencepost.deployment import DeployFailed
from fencepost.store.migrate import SCHEMA, check
from fencepost.store.migration import State, files
from rig.ground import ROOT, wait_until
from rig.runtimes import Runtime, unavailable
from tests.functions.backfill_ground import load
from tests.functions.cloudformation import SIGNED, CloudFormation, cloudformation
from tests.functions.conftest import INSTALLATION, Context, cold

pytestmark = pytest.mark.postgres
Migrate = Callable[..., dict[str, Any]]
EVERYTHING = [file.stem for file in files(SCHEMA)]


@pytest.fixture
def empty_url(server_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with nothing of ours."""
    name = sql.Identifier(
        f"fencepost_deploy_{threading.get_native_id()}_{abs(hash(request.node.name))}"
    )
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(name))
        yield make_conninfo(server_url, dbname=name.as_string().strip('"'))
        admin.execute(sql.SQL("drop database {} with (force)").format(name))


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    with cloudformation(tmp_path) as waiting:
        monkeypatch.setenv("SSL_CERT_FILE", str(waiting.ca_file))
        yield waiting


@pytest.fixture
def migrate(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Migrate]:
    monkeypatch.setenv("DATABASE_URL", empty_url)
    monkeypatch.setenv("FENCEPOST_INSTALLATION", INSTALLATION)
    cold()
    yield load("migrate")
    cold()


def state_of(url: str) -> tuple[set[State], str | None]:
    """The states of all files, and whose database it is."""
    with psycopg.connect(url, autocommit=True) as connection:
        states = {one.state for one in check(connection)}
        found = connection.execute("select name from fencepost.installation").fetchone()
    return states, found[0] if found else None


def test_a_new_stack_finds_its_schema_made_and_its_database_bound(
    migrate: Migrate, stack: CloudFormation, empty_url: str
) -> None:
    migrate(stack.event("Create", Mode="apply"), Context())
    (answer,) = stack.answers
    assert answer.path == f"/answer?{SIGNED}"
    assert not answer.content_type, "the URL is signed for an empty one"
    assert answer.told == {
        "Status": "SUCCESS",
        "Reason": f"applied {', '.join(EVERYTHING)}",
        "PhysicalResourceId": "5f2c-Schema",
        "StackId": stack.event()["StackId"],
        "RequestId": "request-7",
        "LogicalResourceId": "Schema",
        "Data": {"Applied": ", ".join(EVERYTHING), "Boundary": ""},
    }
    assert state_of(empty_url) == ({State.APPLIED}, INSTALLATION)


def test_the_next_deploy_finds_it_up_to_date_and_keeps_the_identity(
    migrate: Migrate, stack: CloudFormation
) -> None:
    migrate(stack.event("Create"), Context())
    migrate(stack.event("Update"), Context())
    first, second = (answer.told for answer in stack.answers)
    assert (second["Status"], second["Reason"]) == ("SUCCESS", "up to date")
    assert second["PhysicalResourceId"] == first["PhysicalResourceId"], "another would be a Delete"


def test_a_deleted_stack_leaves_everything_even_without_a_database(
    migrate: Migrate, stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    migrate(stack.event("Delete"), Context())
    assert stack.answers[0].told["Status"] == "SUCCESS"


def test_an_older_release_put_back_leaves_a_newer_database_alone(
    migrate: Migrate, stack: CloudFormation, empty_url: str
) -> None:
    migrate(stack.event("Create"), Context())
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute(
            "insert into fencepost.migration values ('999_later', repeat('0', 64), now(), 2)"
        )
    migrate(stack.event("Update"), Context())
    told = stack.answers[1].told
    assert told["Status"] == "SUCCESS", "or a rollback could not be rolled back"
    assert "999_later" in told["Reason"]


def test_the_database_of_another_installation_is_not_touched(
    migrate: Migrate, stack: CloudFormation, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(stack.event("Create"), Context())
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("delete from fencepost.migration where file like '0%%'")
        before = connection.execute("select count(*) from fencepost.migration").fetchone()
    monkeypatch.setenv("FENCEPOST_INSTALLATION", "staging")
    migrate(stack.event("Update"), Context())
    told = stack.answers[1].told
    assert (told["Status"], "staging" in told["Reason"]) == ("FAILED", True)
    with psycopg.connect(empty_url, autocommit=True) as connection:
        assert connection.execute("select count(*) from fencepost.migration").fetchone() == before


def test_a_stack_that_only_checks_refuses_until_somebody_has_migrated(
    migrate: Migrate, stack: CloudFormation, empty_url: str
) -> None:
    migrate(stack.event("Create", Mode="check"), Context())
    migrate({}, Context())
    migrate(stack.event("Create", Mode="check"), Context())
    refused, allowed = (answer.told for answer in stack.answers)
    assert (refused["Status"], "001_tables" in refused["Reason"]) == ("FAILED", True)
    assert (allowed["Status"], allowed["Reason"]) == ("SUCCESS", "up to date")


def test_more_functions_than_connections_are_refused_before_anything_is_applied(
    migrate: Migrate, stack: CloudFormation, empty_url: str
) -> None:
    limits = {"OverlapMax": "5", "BackfillConcurrency": "2", "ConnectionsMax": "9"}
    migrate(stack.event("Create", **limits), Context())
    told = stack.answers[0].told
    assert told["Status"] == "FAILED"
    assert "may hold 10 connections at once, more than ConnectionsMax (9)" in told["Reason"]
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("select to_regnamespace('fencepost')").fetchone() == (None,)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DATABASE_URL", "", "DATABASE_URL is not set"),
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing", "the database is away"),
        ("FENCEPOST_INSTALLATION", "", "FENCEPOST_INSTALLATION is not set"),
        ("FENCEPOST_DATABASE_IAM", "perhaps", "FENCEPOST_DATABASE_IAM"),
    ],
)
def test_what_cannot_be_done_is_answered_with_its_reason(
    migrate: Migrate,
    stack: CloudFormation,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    said: str,
) -> None:
    monkeypatch.setenv(name, value)
    migrate(stack.event("Create"), Context())
    told = stack.answers[0].told
    assert (told["Status"], said in told["Reason"]) == ("FAILED", True), told
    with pytest.raises(DeployFailed, match=said):
        migrate({}, Context())


@pytest.mark.parametrize("properties", [{"Mode": "perhaps"}, {"OverlapMax": "many"}])
def test_a_wrong_property_is_answered_too(
    migrate: Migrate, stack: CloudFormation, properties: dict[str, str]
) -> None:
    migrate(stack.event("Create", **properties), Context())
    told = stack.answers[0].told
    assert (told["Status"], next(iter(properties)) in told["Reason"]) == ("FAILED", True)


def test_a_bug_of_ours_is_answered_before_it_is_raised(
    migrate: Migrate, stack: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack that waits for an hour for an answer nobody sends is worse than the bug."""
    event = stack.event("Create")
    event["ResourceProperties"] = ["not", "a", "mapping"]
    with pytest.raises(AttributeError):
        migrate(event, Context())
    assert stack.answers[0].told["Status"] == "FAILED"


def test_an_answer_that_is_not_taken_is_said_again(migrate: Migrate, stack: CloudFormation) -> None:
    stack.statuses[:] = [503, 500]
    migrate(stack.event("Delete"), Context())
    assert [answer.told["Status"] for answer in stack.answers] == ["SUCCESS"] * 3


@pytest.mark.parametrize("seconds", [12.5, 5.0])
def test_a_migration_that_waits_is_cut_and_rolled_back_in_time_to_be_answered(
    migrate: Migrate, stack: CloudFormation, empty_url: str, seconds: float
) -> None:
    """Somebody else holds the turn: without the cut the function would be killed, and leave its transaction open."""
    migrate({}, Context())
    with (
        ThreadPoolExecutor(1) as thread,
        psycopg.connect(empty_url, autocommit=True) as connection,
    ):
        connection.execute("delete from fencepost.migration where file = '090_roles'")
        with connection.transaction():
            connection.execute("lock table fencepost.migration in access exclusive mode")
            going_on = thread.submit(migrate, stack.event("Update"), Context(seconds=seconds))
            going_on.result(timeout=120)
        told = stack.answers[0].told
        assert told["Status"] == "FAILED"
        others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        wait_until(lambda: connection.execute(others).fetchone() == (0,), 5, "its session's end")


def test_no_log_line_holds_the_signed_url(
    migrate: Migrate, stack: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.statuses[:] = [403, 403, 403]
    with pytest.raises(Exception, match="status 403") as raised:
        migrate(stack.event("Delete"), Context())
    out = capsys.readouterr()
    assert SIGNED not in out.out + out.err + str(raised.value)


@pytest.mark.runtime
@pytest.mark.skipif(unavailable() is not None, reason=unavailable() or "")
def test_a_real_runtime_migrates_a_real_database_and_answers(
    empty_url: str, stack: CloudFormation, tmp_path: Path
) -> None:
    environment = {
        "DATABASE_URL": empty_url,
        "FENCEPOST_INSTALLATION": INSTALLATION,
        "SSL_CERT_FILE": str(stack.ca_file),
    }
    with Runtime(
        environment,
        timeout_seconds=60,
        folder=tmp_path,
        name="migrate",
        task_root=ROOT / "functions" / "migrate",
    ) as runtime:
        created = runtime.invoke(stack.event("Create"))
        by_hand = runtime.invoke(json.loads((ROOT / "events" / "migrate.json").read_text()))
    assert created.summary is not None, created
    assert stack.answers[0].told["Status"] == "SUCCESS"
    assert by_hand.summary is not None, by_hand
    assert (by_hand.summary["did"], by_hand.summary["applied"]) == ("up to date", [])
    assert state_of(empty_url) == ({State.APPLIED}, INSTALLATION)
