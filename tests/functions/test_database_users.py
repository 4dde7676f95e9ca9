"""Each function as the database user that docs/deploy.md makes for it, on a server that knew nothing of us."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fencepost.core.notification import Fence
from rig.postgres import LocalPostgres, local_postgres
from rig.receiver import LocalProvider, local_provider
from tests.functions.backfill_ground import batch, command, failed, load
from tests.functions.conftest import ROOT, Context, Ground, end_sandbox
from tests.project.stack import given
from tests.senders.claimed import claimed
from tests.senders.twilio_caller import SECRET, SETTINGS, call, form_of

pytestmark = pytest.mark.postgres
PAGE = (ROOT / "docs" / "deploy.md").read_text()
BEFORE, AFTER, TOKENS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
USERS = {
    "migrate": "fencepost_migrator",
    "backfill": "fencepost_backfill",
    "deliver": "fencepost_worker",
    "callback": "fencepost_callback",
}


@pytest.fixture
def server() -> Iterator[LocalPostgres]:
    with local_postgres() as started:
        yield started


@pytest.fixture
def admin(server: LocalPostgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.url, autocommit=True) as opened:
        opened.execute("create database app")
        opened.execute("create role shop login")
        opened.execute("create role administrator login createrole")  # no superuser, as on RDS
        opened.execute("create role rds_iam")  # RDS has it
        opened.execute("grant rds_iam to administrator with admin option")
        opened.execute("alter database app owner to administrator")
    with psycopg.connect(make_conninfo(server.url, dbname="app"), autocommit=True) as opened:
        yield opened


@pytest.fixture
def says(server: LocalPostgres) -> Callable[[str, str], None]:
    """A block of the page, said by a database user."""

    def said(user: str, block: str) -> None:
        url = make_conninfo(server.url, dbname="app", user=user)
        with psycopg.connect(url, autocommit=True) as opened:
            opened.execute(block.encode())

    return said


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[LocalProvider]:
    with local_provider(tmp_path) as started:
        yield started


@pytest.fixture
def invoke(
    server: LocalPostgres, environment: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """A function of the stack, as its own user, in a sandbox of its own."""

    def invoked(function: str, event: dict[str, Any]) -> dict[str, Any]:
        end_sandbox()
        url = make_conninfo(server.url, dbname="app", user=USERS[function])
        monkeypatch.setenv("DATABASE_URL", url)
        return load(function)(event, Context())

    return invoked


def test_the_users_of_the_page_are_enough_and_the_boundary_is_whole(
    admin: psycopg.Connection,
    provider: LocalProvider,
    invoke: Callable[..., dict[str, Any]],
    says: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says("administrator", BEFORE)
    migrated = invoke("migrate", {})
    assert len(migrated["applied"]) > 5
    assert migrated["boundary_missing"] == []
    says("fencepost_migrator", AFTER)
    says("administrator", TOKENS)
    assert invoke("migrate", {})["applied"] == [], "a second deploy"

    Ground(admin, provider).channel()
    (name,) = admin.execute("select name from fencepost.channel").fetchone() or ("",)
    rows = [
        {"channel": name, "recipient": f"{provider.url}/dedupes/ok/0/{number}", "payload": {}}
        for number in range(3)
    ]
    answer = invoke("backfill", batch(command("enqueue", rows=rows), command("drain")))
    assert failed(answer) == []
    rows[0]["recipient"] = f"{provider.url}/dedupes/ok/0/last"
    assert failed(invoke("backfill", batch(command("enqueue", rows=rows[:1])))) == []
    assert invoke("deliver", {})["delivered"] == 1
    delivered = "select count(*) from fencepost.closed where kind = 'delivered'"
    assert admin.execute(delivered).fetchone() == (4,)

    to_twilio = "update fencepost.channel set sender = 'twilio', settings = %s, secret_reference = 'env:TWILIO'"
    admin.execute(to_twilio, [json.dumps(SETTINGS)])
    monkeypatch.setenv("TWILIO", SECRET)
    (id, key) = admin.execute(
        "select id, idempotency_key from fencepost.notification order by id limit 1"
    ).fetchone() or (0, "")
    row = claimed(id=id, fence=Fence(1), idempotency_key=key)
    assert invoke("callback", call(row, form_of("delivered"), channel=name)) == {"statusCode": 204}
    assert admin.execute("select source from fencepost.evidence").fetchone() == ("callback",)


def test_the_page_limits_connections_to_what_the_stack_counts() -> None:
    limits = dict(re.findall(r"alter role (\w+) connection limit (\d+);\s+-- (?:\w+)", AFTER))
    production = (ROOT / "stages" / "prod.yaml").read_text()
    runs, batches = (
        int(json.loads(re.findall(rf"^{name}: (\d+)$", production, re.MULTILINE)[0]))
        for name in ("OverlapMax", "BackfillConcurrency")
    )
    assert limits == {
        "fencepost_worker": str(runs),
        "fencepost_backfill": str(2 * batches),
        "fencepost_callback": given("prod")["CallbackConcurrency"],
    }
