"""Real runtimes whose password is a secret: read when it is needed, rotated under them, never in their logs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
from moto.server import ThreadedMotoServer
from psycopg.conninfo import make_conninfo

from rig.receiver import local_provider
from tests.drills.ground import ANY_ADDRESS, Ground, event
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres

SLOTS = 4
SECRET_ID = "fencepost/worker"
KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with guarded_postgres(tls=True) as server:
        yield server


@pytest.fixture
def aws() -> Iterator[str]:
    """Where AWS is."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def secrets(aws: str) -> Any:
    client = boto3.client("secretsmanager", endpoint_url=aws, region_name="us-east-1", **KEYS)
    client.create_secret(Name=SECRET_ID, SecretString=secret_of(PASSWORD))
    return client


@pytest.fixture
def ground(guarded: Guarded, tmp_path: Path) -> Iterator[Ground]:
    name = guarded.database()
    admin = psycopg.connect(make_conninfo(guarded.server.url, dbname=name), autocommit=True)
    with local_provider(tmp_path, address=ANY_ADDRESS) as provider, admin:
        opened = Ground(guarded.url(user="", dbname=name), admin, provider, tmp_path)
        try:
            yield opened
        finally:
            opened.end()


def secret_of(password: str) -> str:
    return json.dumps({"username": ROLE, "password": password})


def test_a_password_rotated_while_the_sandbox_sleeps(
    ground: Ground, guarded: Guarded, aws: str, secrets: Any
) -> None:
    ground.channel(slots=SLOTS)
    runtime = ground.runtime(
        {
            "FENCEPOST_DATABASE_SECRET_ID": SECRET_ID,
            "FENCEPOST_DATABASE_CA_FILE": guarded.ca_file or "",
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": aws,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }
    )
    ground.enqueue(SLOTS)
    first = runtime.invoke(event("cold")).summary
    assert first is not None
    assert first["delivered"] == SLOTS
    pid = runtime.freeze()
    guarded.password("second-hunter2")
    secrets.put_secret_value(SecretId=SECRET_ID, SecretString=secret_of("second-hunter2"))
    guarded.end_backends()
    ground.enqueue(SLOTS)
    before = guarded.logins()
    runtime.thaw()
    after = runtime.invoke(event("rotated")).summary
    assert after is not None
    assert runtime.pid() == pid, "the same sandbox"
    assert (after["delivered"], after["retried"], after["doubt"]) == (SLOTS, 0, 0)
    assert guarded.logins() == before + 1
    assert ground.rows("select distinct attempts from fencepost.closed") == [(1,)]
    log = runtime.log()
    assert len([line for line in log.splitlines() if "database_redialled" in line]) == 1
    assert "hunter2" not in log
    ground.assert_conserved()
