"""The stack as CloudFormation gets it from SAM's own translator: what SAM adds is ours to answer for too."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rig.ground import ROOT

SAM_PYTHON = os.environ.get("FENCEPOST_SAM_PYTHON", "")
TRANSLATE = Path(__file__).parent / "translate.py"
pytestmark = pytest.mark.skipif(not SAM_PYTHON, reason="SAM's translator is in make sam-check")
FUNCTIONS = ("DeliverFunction", "BackfillFunction", "CallbackFunction")
A, B = "a" * 64, "b" * 64


@cache
def translated(release_hash: str = A, layer: str = "layer") -> dict[str, Any]:
    """`layer`: other content, as a package would have it."""
    words = [f"ReleaseHash={release_hash}", "Installation=test", f"Layer={layer}"]
    command = [str(ROOT / SAM_PYTHON), "-I", str(TRANSLATE), str(ROOT / "template.yaml"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    resources: dict[str, Any] = json.loads(done.stdout)["Resources"]
    return resources


def versions(**words: str) -> set[str]:
    """Logical names: a new one is a new version."""
    found = translated(**words).items()
    return {name for name, one in found if one["Type"] == "AWS::Lambda::Version"}


def test_every_release_is_a_new_version_of_each() -> None:
    assert len(versions()) == len(FUNCTIONS)
    assert not versions(release_hash=A) & versions(release_hash=B)


def test_a_layer_that_changes_without_the_hash_is_none() -> None:
    """The trap is still there: should this fail, SAM has learnt it, and the hash may go."""
    assert versions(layer="one") == versions(layer="another")


def test_a_release_changes_what_lambda_compares() -> None:
    """Lambda publishes no version of a function in which nothing changed."""
    for name in FUNCTIONS:
        variables = translated()[name]["Properties"]["Environment"]["Variables"]
        assert variables["FENCEPOST_RELEASE_HASH"] in (A, {"Ref": "ReleaseHash"})


def test_the_schema_comes_before_the_functions_and_after_what_makes_it() -> None:
    for name in FUNCTIONS:
        assert translated()[name]["DependsOn"] in ("Schema", ["Schema"])
    token = translated()["Schema"]["Properties"]["ServiceToken"]
    assert token == {"Fn::GetAtt": ["MigrateFunction", "Arn"]}


def test_schedule_and_queue_invoke_the_alias() -> None:
    schedule = translated()["DeliverFunctionTick"]["Properties"]
    assert schedule["Target"]["Arn"] == {"Ref": "DeliverFunctionAliaslive"}
    source = translated()["BackfillFunctionCommands"]["Properties"]
    assert source["FunctionName"] == {"Ref": "BackfillFunctionAliaslive"}


def test_everybody_may_call_the_alias_of_the_callbacks_and_nothing_else() -> None:
    """Both permissions that a public URL needs, and all that SAM makes stands behind the condition."""
    found = translated()
    url = found["CallbackFunctionUrl"]["Properties"]
    assert url["AuthType"] == "NONE"
    public = {
        one["Properties"]["Action"]: one["Properties"]
        for one in found.values()
        if one["Type"] == "AWS::Lambda::Permission" and one["Properties"]["Principal"] == "*"
    }
    assert set(public) == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    assert public["lambda:InvokeFunctionUrl"]["FunctionUrlAuthType"] == "NONE"
    assert public["lambda:InvokeFunction"]["InvokedViaFunctionUrl"] is True
    alias = {"Ref": "CallbackFunctionAliaslive"}
    assert [one["FunctionName"] for one in public.values()] == [alias, alias]
    mine = {name for name in found if name.startswith("Callback")}
    assert {found[name].get("Condition") for name in mine} == {"HearsTwilio"}


def test_two_stacks_fit_into_one_account() -> None:
    """Names are given once an account and region; what has one must have the stack's in it."""
    for name, resource in translated().items():
        if resource["Type"] == "AWS::Lambda::Alias":
            continue  # a name within its function
        for key, value in resource.get("Properties", {}).items():
            if key in ("Name", "QueueName", "FunctionName", "DBProxyName", "DashboardName"):
                assert not isinstance(value, str), f"{name} has the same {key} in every stack"


def test_sam_adds_no_policy_to_a_function() -> None:
    for name in (*FUNCTIONS, "MigrateFunction"):
        assert translated()[name]["Properties"]["Role"] == {
            "Fn::GetAtt": [f"{name.removesuffix('Function')}Role", "Arn"]
        }


def test_the_brake_of_a_deploy_is_there() -> None:
    for name in FUNCTIONS:
        group = translated()[f"{name}DeploymentGroup"]["Properties"]
        assert group["AlarmConfiguration"]["Enabled"] is True
        assert len(group["AlarmConfiguration"]["Alarms"]) == 1
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
        assert "CodeDeployLambdaAliasUpdate" in translated()[f"{name}Aliaslive"]["UpdatePolicy"]
