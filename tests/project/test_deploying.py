"""How a release is deployed: one command a stage, a hash it computes, a question before production."""

import re
import tomllib
from typing import Any

import pytest

from tests.project.sources import ROOT
from tests.project.stack import STAGES, every, template

MAKEFILE = (ROOT / "Makefile").read_text()


def samconfig() -> dict[str, Any]:
    return tomllib.loads((ROOT / "samconfig.toml").read_text())


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


def test_every_stage_has_its_environment_and_the_other_way_round() -> None:
    assert set(samconfig()) - {"version", "default"} == set(STAGES) == {"dev", "prod"}


@pytest.mark.parametrize("stage", STAGES)
def test_only_production_asks_before_it_changes_anything(stage: str) -> None:
    deploy = samconfig()[stage]["deploy"]["parameters"]
    assert deploy["confirm_changeset"] is (stage == "prod")
    assert deploy["capabilities"] == "CAPABILITY_IAM"
    assert samconfig()[stage]["global"]["parameters"]["stack_name"] == f"fencepost-{stage}"


def test_a_build_never_takes_a_layer_from_a_cache() -> None:
    """It would be one of another architecture: the cache does not know what the makefile was told."""
    assert not [one for one in every(samconfig()) if isinstance(one, dict) and one.get("cached")]


def test_a_deploy_computes_its_hash_and_builds_for_what_it_deploys() -> None:
    parameters = re.search(r"^PARAMETERS = (.*)$", MAKEFILE, re.MULTILINE)
    assert parameters
    assert "file://stages/$(STAGE).yaml" in parameters[1]
    assert "ReleaseHash=$$($(PYTHON) -m rig.release_hash)" in parameters[1]
    assert "Architecture=$(ARCHITECTURE)" in parameters[1]
    build, deploy = (line for line in recipe("deploy").splitlines() if "$(SAM)" in line)
    assert "ARCHITECTURE=$(ARCHITECTURE)" in build
    assert "--config-env $(STAGE)" in build
    assert "--config-env $(STAGE)" in deploy
    assert build.endswith("--parameter-overrides $(PARAMETERS)")
    assert deploy.endswith("--parameter-overrides $(PARAMETERS)")


def test_what_is_checked_is_built_and_invoked() -> None:
    check = recipe("sam-check")
    for step in ("validate --lint", "$(SAM) build", "pytest tests/built"):
        assert step in check


def test_the_page_names_every_parameter_without_which_nothing_deploys() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    needed = {name for name, one in template()["Parameters"].items() if "Default" not in one}
    assert needed == {"ReleaseHash", "Installation"}
    for name in ("DatabaseAccess", "DatabaseCaFile", "ConnectionsMax", "Migrations", *needed):
        assert f"`{name}`" in page, name
