"""A deploy under way: the release before and the one after it on one schema, in real runtimes, at the same time."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.ground import ROOT, wait_until
from rig.receiver import SECRET
from rig.runtimes import Runtime
from tests.drills.ground import INSTALLATION, Ground, event
from tests.functions.cloudformation import CloudFormation, cloudformation

# What the release after this one might do: a table, a column, a new overload, a function replaced; nothing taken away.
NEXT_SCHEMA = """
create table fencepost.of_the_next_release (id bigint primary key);
alter table fencepost.run add column of_the_next_release text;
create function fencepost.has_work(p_channels text[], p_more boolean) returns boolean language sql stable
security definer set search_path = pg_catalog, pg_temp as 'select fencepost.has_work(p_channels)';
create or replace function fencepost.nobody() returns uuid language sql immutable
as $$select '00000000-0000-0000-0000-000000000000'::uuid$$;
"""
SLOTS = 4


@dataclass
class Release:
    """A shared layer, and runtimes that have it."""

    version: int
    layer: Path

    def runtime(self, ground: Ground, function: str = "deliver", **environment: str) -> Runtime:
        own = {
            "DATABASE_URL": ground.url,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "DRILL_SECRET": SECRET,
            **environment,
        }
        return Runtime(
            own,
            timeout_seconds=40,
            folder=ground.folder,
            name=f"{function}-{self.version}",
            task_root=ROOT / "functions" / function,
            layers=(self.layer,),
        )


@pytest.fixture
def old(tmp_path: Path) -> Release:
    return released(1, tmp_path)


@pytest.fixture
def new(tmp_path: Path) -> Release:
    release = released(2, tmp_path)
    schema = release.layer / "fencepost" / "store" / "schema"
    (schema / "990_next.sql").write_text(NEXT_SCHEMA)
    return release


def released(version: int, folder: Path) -> Release:
    layer = folder / f"release-{version}"
    shutil.copytree(ROOT / "shared" / "fencepost", layer / "fencepost")
    file = layer / "fencepost" / "core" / "version.py"
    text, changes = re.subn(r"(CODE_VERSION: Final = )\d+", rf"\g<1>{version}", file.read_text())
    assert changes == 1
    file.write_text(text)
    return Release(version, layer)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[CloudFormation]:
    with cloudformation(tmp_path) as waiting:
        yield waiting


def test_runs_of_both_releases_go_on_beside_the_deploy_and_after_it(
    ground: Ground, old: Release, new: Release, stack: CloudFormation
) -> None:
    ground.channel(slots=SLOTS)
    first = ground.enqueue(SLOTS, "gate")
    with (
        old.runtime(ground) as before,
        new.runtime(ground) as after,
        new.runtime(ground, "migrate", SSL_CERT_FILE=str(stack.ca_file)) as deploy,
    ):
        under_way = ground.invoke(before)
        wait_until(lambda: ground.arrived(first) == SLOTS, 20, "the older run to be sending")
        deployed = deploy.invoke(stack.event("Update"))
        assert deployed.summary is not None, deploy.log()
        assert stack.answers[0].told["Reason"] == "applied 990_next"

        second = ground.enqueue(SLOTS, "gate")
        beside = ground.invoke(after)
        wait_until(lambda: ground.arrived(second) == SLOTS, 20, "the newer run to be sending")
        ground.provider.open_gate()
        for ended in (under_way.result(), beside.result()):
            assert ended.summary is not None, ended
        ground.enqueue(3)
        again = before.invoke(event("again"))
        assert again.summary is not None, before.log()
        assert again.summary["delivered"] == 3, "the older release goes on until its last tick"
    assert ground.closed()
    ground.assert_conserved()
    assert ground.number("select count(*) from fencepost.closed where kind = 'delivered'") == 11
    assert ground.number("select max(attempts) from fencepost.closed") == 1
    versions = ground.rows("select distinct code_version from fencepost.run order by 1")
    assert versions == [(1,), (2,)]


def test_an_older_release_ends_what_it_holds_and_starts_nothing_once_it_is_too_old(
    ground: Ground, old: Release, new: Release
) -> None:
    """`minimum_code_version` is raised while a run of the older code is sending: it may still say what it knows."""
    ground.channel(slots=SLOTS)
    held = ground.enqueue(SLOTS, "gate")
    with old.runtime(ground) as before, new.runtime(ground) as after:
        under_way = ground.invoke(before)
        wait_until(lambda: ground.arrived(held) == SLOTS, 20, "the older run to be sending")
        ground.connection.execute("update fencepost.installation set minimum_code_version = 2")
        ground.provider.open_gate()
        ended = under_way.result()
        assert ended.summary is not None, ended
        assert ended.summary["delivered"] == SLOTS

        ground.enqueue(2)
        refused = before.invoke(event("too old"))
        assert refused.error is not None, refused
        assert "needs at least 2" in refused.error
        taken = after.invoke(event("newer"))
        assert taken.summary is not None, after.log()
        assert taken.summary["delivered"] == 2
    assert ground.closed()
    ground.assert_conserved()


def test_a_rollback_leaves_the_newer_schema_and_the_older_release_runs_on_it(
    ground: Ground, old: Release, new: Release, stack: CloudFormation
) -> None:
    certificate = {"SSL_CERT_FILE": str(stack.ca_file)}
    with (
        new.runtime(ground, "migrate", **certificate) as deploy,
        old.runtime(ground, "migrate", **certificate) as rollback,
        old.runtime(ground) as before,
    ):
        for step in (deploy, rollback):
            assert step.invoke(stack.event("Update")).summary is not None, step.log()
        assert [answer.told["Status"] for answer in stack.answers] == ["SUCCESS", "SUCCESS"]
        assert "990_next" in json.dumps(stack.answers[1].told["Reason"])
        ground.channel()
        ground.enqueue(3)
        ran = before.invoke(event("after the rollback"))
        assert ran.summary is not None, before.log()
        assert ran.summary["delivered"] == 3
