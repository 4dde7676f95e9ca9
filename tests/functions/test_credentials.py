"""Credentials of AWS through the whole: a secret of Secrets Manager, a token of IAM, a real database behind TLS."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import boto3
import psycopg
import pytest
from moto import mock_aws

from fencepost import bootstrap
from fencepost.core.access import Database, FromSecret
from fencepost.ports import AccessUnavailable, StoreFailed
from fencepost.settings import SettingsError, read_database
from fencepost.store.operator import Operator
from rig.receiver import local_provider
from tests.functions.conftest import Context, Ground
from tests.store.guarded import HOST, PASSWORD, ROLE, Guarded, guarded_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
Deliver = Callable[..., dict[str, Any]]
SECRET_ID = "fencepost/worker"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with guarded_postgres(tls=True) as server:
        yield server


@pytest.fixture
def database_url(guarded: Guarded) -> str:
    """The sandbox's DATABASE_URL: where, and nothing of who."""
    guarded.password(PASSWORD)
    return guarded.url(user="", dbname=guarded.database())


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


@pytest.fixture
def secrets(aws: None, guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Secrets Manager with the worker's secret in it, and the function told of it."""
    client = boto3.client("secretsmanager")
    client.create_secret(Name=SECRET_ID, SecretString=secret_of(PASSWORD))
    monkeypatch.setenv("FENCEPOST_DATABASE_SECRET_ID", SECRET_ID)
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", guarded.ca_file or "")
    return client


@pytest.fixture
def ground(guarded: Guarded, database_url: str, tmp_path: Path) -> Iterator[Ground]:
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    admin = psycopg.connect(f"{guarded.server.url.removesuffix('postgres')}{name}", autocommit=True)
    with local_provider(tmp_path) as provider, admin:
        yield Ground(admin, provider)


def secret_of(password: str) -> str:
    return json.dumps({"username": ROLE, "password": password, "engine": "postgres"})


def lines_of(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
    out = capsys.readouterr()
    spoken = [json.loads(line) for line in out.out.splitlines()]
    return [line for line in spoken if "_aws" not in line], out.out + out.err


def test_a_tick_with_a_secret_that_is_rotated(
    guarded: Guarded,
    secrets: Any,
    ground: Ground,
    deliver: Deliver,
    tick: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    ground.channel()
    ground.enqueue(2)
    assert deliver(tick, Context())["delivered"] == 2
    guarded.password("second-hunter2")
    secrets.put_secret_value(SecretId=SECRET_ID, SecretString=secret_of("second-hunter2"))
    guarded.end_backends()
    ground.enqueue(2)
    before = guarded.logins()
    summary = deliver(tick, Context())
    assert (summary["delivered"], summary["retried"], summary["doubt"]) == (2, 0, 0)
    assert guarded.logins() == before + 1
    lines, said = lines_of(capsys)
    told = [line for line in lines if line["action"] == "database_redialled"]
    assert len(told) == 1
    assert "credentials read anew" in told[0]["reason"]
    assert "hunter2" not in said
    assert ground.number("select max(attempts) from fencepost.closed") == 1


def test_a_secret_that_is_not_there_begins_nothing(
    secrets: Any,
    ground: Ground,
    deliver: Deliver,
    tick: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    secrets.delete_secret(SecretId=SECRET_ID, ForceDeleteWithoutRecovery=True)
    ground.channel()
    ground.enqueue(1)
    with pytest.raises(StoreFailed, match=f"the secret {SECRET_ID} cannot be read"):
        deliver(tick, Context())
    (line,), _ = lines_of(capsys)
    assert (line["action"], line["level"]) == ("run_not_started", "ERROR")
    assert ground.number("select max(attempts) from fencepost.queue") == 0


def test_a_secret_is_read_once_until_it_is_old_or_refused(secrets: Any) -> None:
    """Powertools keeps it; what was refused is fetched whatever its age."""
    fetch = bootstrap.Secrets().fetch
    before = fetch(SECRET_ID, 300.0, False)
    secrets.put_secret_value(SecretId=SECRET_ID, SecretString="another")
    assert fetch(SECRET_ID, 300.0, False) == before == secret_of(PASSWORD)
    assert fetch(SECRET_ID, 300.0, True) == "another"
    assert fetch(SECRET_ID, 300.0, False) == "another"


def test_no_region_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(AccessUnavailable, match="region"):
        bootstrap.Secrets().fetch(SECRET_ID, 300.0, False)
    with pytest.raises(AccessUnavailable, match="region"):
        bootstrap.sign_token("db", 5432, "worker")


def test_a_token_needs_no_call_and_says_whose_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", refuse_to_call)
    token = bootstrap.sign_token("db.cluster.eu-central-1.rds.amazonaws.com", 5432, "worker")
    place, _, query = token.partition("/?")
    assert place == "db.cluster.eu-central-1.rds.amazonaws.com:5432"
    words = parse_qs(query)
    assert (words["Action"], words["DBUser"]) == (["connect"], ["worker"])
    assert words["X-Amz-Expires"] == ["900"]
    assert "/eu-central-1/rds-db/aws4_request" in words["X-Amz-Credential"][0]


def refuse_to_call(*_: object, **__: object) -> None:
    raise AssertionError("a call")


def test_a_tick_with_a_token(
    guarded: Guarded,
    aws: None,
    ground: Ground,
    database_url: str,
    deliver: Deliver,
    tick: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The server takes the newest token only, as if AWS had vouched for it and the older ones had expired."""
    signed: list[str] = []
    sign = bootstrap.sign_token

    def vouched(host: str, port: int, user: str) -> str:
        signed.append(sign(host, port, user))
        guarded.password(signed[-1])
        return signed[-1]

    monkeypatch.setattr(bootstrap, "sign_token", vouched)
    monkeypatch.setenv("DATABASE_URL", f"{database_url} user={ROLE}")
    monkeypatch.setenv("FENCEPOST_DATABASE_IAM", "true")
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", guarded.ca_file or "")
    ground.channel()
    for _ in range(2):
        ground.enqueue(2)
        assert deliver(tick, Context())["delivered"] == 2
        guarded.end_backends()
    assert len(signed) == 2
    assert all(token.startswith(f"{HOST}:{guarded.server.port}/?") for token in signed)
    _, said = lines_of(capsys)
    assert "X-Amz-Signature" not in said
    assert ground.number("select max(attempts) from fencepost.closed") == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"DATABASE_URL": "postgresql://w:hush@db/app?sslmode=require"}, "sslmode=require"),
        ({"DATABASE_URL": "postgresql://w:hush%zz@db/app"}, "cannot be read"),
        ({"FENCEPOST_DATABASE_CA_FILE": "/nowhere/ca.pem"}, "FENCEPOST_DATABASE_CA_FILE"),
        ({"FENCEPOST_DATABASE_IAM": "true"}, "holds a password"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_dialled(
    deliver: Deliver,
    tick: dict[str, Any],
    guarded: Guarded,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    words: str,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://w:hush@db/app")
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", guarded.ca_file or "")
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=words) as refused:
        deliver(tick, Context())
    assert "hush" not in str(refused.value)


def test_every_function_reaches_the_database_the_same_way(
    environment: None, secrets: Any, guarded: Guarded, database_url: str
) -> None:
    access = bootstrap.reach(read_database())
    with Operator(access) as operator:
        assert operator.say.connection.info.user == ROLE
    assert read_database() == Database(
        url=database_url, credentials=FromSecret(secret_id=SECRET_ID), ca_file=guarded.ca_file
    )
