"""Commands reach the database as functions do: by URL, by a secret, verified; what cannot be is a matter of usage."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from tests.cli.conftest import Fencepost
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
OPERATOR = "fencepost_operator"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with guarded_postgres(tls=True) as server:
        server.admin.execute(f"alter role {OPERATOR} password '{PASSWORD}'".encode())
        yield server


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("FENCEPOST_DATABASE_SECRET_ID", "operator")
    with mock_aws():
        words = json.dumps({"username": OPERATOR, "password": PASSWORD})
        boto3.client("secretsmanager").create_secret(Name="operator", SecretString=words)
        yield


def test_a_command_with_a_secret(
    inline: Fencepost, guarded: Guarded, secret: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", guarded.ca_file or "")
    assert inline(guarded.url(user=""), "status").code == 0
    said = inline(guarded.url(user="", host="other.fencepost.test"), "status")
    assert said.code == 3
    assert "does not match host name" in said.err


def test_a_url_with_a_ca_file_is_verified(
    inline: Fencepost, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", guarded.ca_file or "")
    url = guarded.url(user=OPERATOR, password=PASSWORD)
    assert inline(url, "status").code == 0
    said = inline(guarded.url(user=ROLE, host="other.test", password=PASSWORD), "status")
    assert (said.code, "does not match host name" in said.err) == (3, True)


@pytest.mark.parametrize("words", [("status",), ("run", "--installation", "test")])
def test_settings_that_cannot_be_together_are_a_matter_of_usage(
    inline: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (tmp_path / "ca.pem").touch()
    monkeypatch.setenv("FENCEPOST_DATABASE_CA_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("FENCEPOST_DATABASE_IAM", "true")
    said = inline("postgresql://w:hunter2@db/app", *words)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "holds a password" in said.err
    assert "hunter2" not in said.err


@pytest.mark.parametrize("url", ["nonsense", "postgresql://u:hunter2%zz@h/d", "host=h port=x"])
@pytest.mark.parametrize("words", [("status",), ("backfill", "show", str(uuid.UUID(int=1)))])
def test_an_address_nobody_can_read_is_no_database_that_is_away(
    inline: Fencepost, url: str, words: tuple[str, ...]
) -> None:
    said = inline(None, *words, "--database-url", url)
    assert (said.code, said.out) == (2, "")
    assert "cannot be read" in said.err
    assert "hunter2" not in said.err
