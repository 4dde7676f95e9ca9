"""The built artefact at work: a deploy, commands, a tick. What the layers lack fails here and not in the account."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rig.ground import ROOT
from rig.receiver import LocalProvider, local_provider
from tests.built.conftest import LAYERS, Build
from tests.functions.backfill_ground import batch, command, failed
from tests.functions.cloudformation import CloudFormation, cloudformation

CHANNEL = {
    "name": "way",
    "sender": "webhook",
    "settings": {"allow_http": True, "allow_private_networks": True},
    "secret_reference": "env:WEBHOOK_SECRET",
    "on_uncertain": "hold",
}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    with local_provider(tmp_path) as started:
        yield started


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[CloudFormation]:
    with cloudformation(tmp_path) as waiting:
        yield waiting


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    name = sql.Identifier("fencepost_built")
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        admin.execute(sql.SQL("create database {}").format(name))
        yield make_conninfo(server_url, dbname="fencepost_built")
        admin.execute(sql.SQL("drop database {} with (force)").format(name))


def test_a_deploy_commands_and_a_tick_by_what_was_built(
    build: Build, stack: CloudFormation, empty_url: str, provider: LocalProvider
) -> None:
    environment = {"DATABASE_URL": empty_url, "SSL_CERT_FILE": str(stack.ca_file)}
    with build.runtime("MigrateFunction", environment) as migrate:
        invoked = migrate.invoke(stack.event("Create", Mode="apply"))
        assert invoked.summary is not None, migrate.log()
    assert stack.answers[0].told["Status"] == "SUCCESS"

    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("select fencepost.channel_apply(%s)", [json.dumps([CHANNEL])])
    rows = [
        {"channel": "way", "recipient": f"{provider.url}/dedupes/ok/0/{number}", "payload": {}}
        for number in range(5)
    ]
    with build.runtime("BackfillFunction", environment) as backfill:
        invoked = backfill.invoke(batch(command("enqueue", rows=rows), "no command"))
        assert invoked.summary is not None, backfill.log()
        assert failed(invoked.summary) == ["1"], backfill.log()

    tick = json.loads((ROOT / "events" / "tick.json").read_text())
    with build.runtime("DeliverFunction", environment) as deliver:
        invoked = deliver.invoke(tick)
        assert invoked.summary is not None, deliver.log()
    assert (invoked.summary["delivered"], invoked.summary["ended"]) == (5, "drained")
    assert provider.count().arrivals == 5


def test_everything_in_the_layers_is_compiled(build: Build) -> None:
    """/opt is read-only: what has no bytecode is compiled at every cold start."""
    for name in LAYERS:
        modules = [file for file in build.layer(name).rglob("*.py") if "lib2to3" not in file.parts]
        assert len(modules) > 20
        bare = [
            file
            for file in modules
            if not list((file.parent / "__pycache__").glob(f"{file.stem}.cpython-313*.pyc"))
        ]
        assert bare == []


def test_the_runtimes_interpreter_brings_nothing_of_ours(build: Build) -> None:
    """Else a package that is missing in the layers would be found beside it."""
    asked = "import importlib.util as i; print([n for n in %r if i.find_spec(n)])"
    names = ["fencepost", "psycopg", "httpunk", "msgspec", "aws_lambda_powertools"]
    done = subprocess.run(
        [build.python, "-I", "-c", asked % names], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_function_folders_hold_the_handler_alone(build: Build) -> None:
    for function in ("DeliverFunction", "BackfillFunction", "MigrateFunction", "CallbackFunction"):
        files = {file.name for file in (build.folder / function).iterdir()}
        assert files - {"__pycache__"} == {"handler.py"}
