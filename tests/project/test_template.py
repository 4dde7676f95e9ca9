"""The template deploys what the code expects: the same variables, no retries but ours, bytecode in the layers."""

import json
import re

import pytest

from fencepost import settings
from tests.project.sources import ROOT
from tests.project.stack import functions, named, of_type, template, variables

RUN = {settings.CHANNELS, *settings.DURATIONS.values()}
DATABASE = {
    settings.DATABASE_URL,
    settings.CREDENTIALS_ID,
    settings.DATABASE_IAM,
    settings.DATABASE_CA_FILE,
}
EVERYWHERE = {settings.INSTALLATION, settings.RELEASE_HASH, *DATABASE}
LEFT_AT_THEIR_DEFAULT = {settings.CREDENTIALS_MAX_AGE, settings.AGE_OF_SECRETS}
VARIABLES = {
    "MigrateFunction": EVERYWHERE,
    "DeliverFunction": EVERYWHERE | RUN | {settings.QUEUE_URL, settings.DRAIN_MESSAGES},
    "BackfillFunction": EVERYWHERE | RUN | {settings.QUEUE_URL, settings.DRAIN_MESSAGES},
    "CallbackFunction": EVERYWHERE,
}
WITH_ALIAS = {"DeliverFunction", "BackfillFunction", "CallbackFunction"}


def test_every_function_has_its_file_a_role_and_a_log_group_that_forgets() -> None:
    assert set(functions()) == set(VARIABLES)
    for function in functions().values():
        module, name = function["Handler"].split(".")
        text = (ROOT / function["CodeUri"] / f"{module}.py").read_text()
        assert f"def {name}(event" in text
        logs = template()["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
        assert "RetentionInDays" in logs["Properties"]
        assert function["Role"]["GetAtt"].removesuffix(".Arn") in of_type("AWS::IAM::Role")


def test_a_function_is_one_file_that_shadows_nothing() -> None:
    """Its folder comes first on the path: a second module in it could hide one of the layers."""
    for function in functions().values():
        files = {file.name for file in (ROOT / function["CodeUri"]).iterdir()}
        assert files - {"__pycache__"} == {"handler.py"}


@pytest.mark.parametrize("name", VARIABLES)
def test_the_variables_of_the_template_are_those_of_the_settings(name: str) -> None:
    ours = {
        one for one in variables(functions()[name]) if one.startswith(("FENCEPOST_", "DATABASE_"))
    }
    assert ours == VARIABLES[name]


def test_every_variable_the_settings_know_is_deployed_somewhere() -> None:
    known = {
        text
        for name, text in vars(settings).items()
        if name.isupper()
        and isinstance(text, str)
        and re.fullmatch(r"(FENCEPOST|DATABASE)_\w+", text)
    }
    deployed = {one for function in functions().values() for one in variables(function)}
    assert known - LEFT_AT_THEIR_DEFAULT == deployed & known
    assert known >= LEFT_AT_THEIR_DEFAULT


def test_only_the_next_tick_tries_again() -> None:
    deliver = functions()["DeliverFunction"]
    tick = deliver["Events"]["Tick"]
    assert (tick["Type"], tick["Properties"]["ScheduleExpression"]) == (
        "ScheduleV2",
        "rate(1 minute)",
    )
    period = 60
    for retries in (tick["Properties"]["RetryPolicy"], deliver["EventInvokeConfig"]):
        assert retries == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": period}
    assert functions()["MigrateFunction"]["EventInvokeConfig"]["MaximumRetryAttempts"] == 0


def test_commands_fail_one_by_one_and_go_on_in_their_own_queue() -> None:
    commands = functions()["BackfillFunction"]["Events"]["Commands"]["Properties"]
    assert commands["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert functions()["BackfillFunction"]["RecursiveLoop"] == "Allow", (
        "else Lambda drops a command that goes on in its own queue, after sixteen messages"
    )


def test_every_layer_is_built_with_its_bytecode_for_the_runtime_it_serves() -> None:
    runtime = template()["Globals"]["Function"]["Runtime"]
    layers = of_type("AWS::Serverless::LayerVersion")
    assert [{"Ref": name} for name in layers] == template()["Globals"]["Function"]["Layers"]
    for name, layer in layers.items():
        assert template()["Resources"][name]["Metadata"]["BuildMethod"] == "makefile"
        assert layer["CompatibleRuntimes"] == [runtime]
        assert layer["RetentionPolicy"] == "Retain", "a rollback needs the layer before"
        recipe = (ROOT / layer["ContentUri"] / "Makefile").read_text()
        assert f"build-{name}:" in recipe
        assert re.search(rf"^PYTHON := {runtime}$", recipe, re.MULTILINE)
        assert "compileall" in recipe


def test_a_layer_that_changes_alone_reaches_the_alias() -> None:
    """The hash makes a version of every release, and is what differs in it: without the second use Lambda finds
    that nothing changed, and the stack rolls back."""
    hash_of_release = {"Ref": "ReleaseHash"}
    assert "Default" not in template()["Parameters"]["ReleaseHash"], "nobody deploys without one"
    assert {name for name, one in functions().items() if "AutoPublishAlias" in one} == WITH_ALIAS
    for name in WITH_ALIAS:
        function = functions()[name]
        assert function["AutoPublishAlias"] == "live"
        assert function["AutoPublishCodeSha256"] == hash_of_release
        assert variables(function)[settings.RELEASE_HASH] == hash_of_release


def test_new_code_waits_for_its_schema_and_no_other_function_migrates() -> None:
    schema = template()["Resources"]["Schema"]["Properties"]
    assert schema["ServiceToken"] == {"GetAtt": "MigrateFunction.Arn"}
    assert schema["ReleaseHash"] == {"Ref": "ReleaseHash"}, (
        "else it would run in the first deploy only"
    )
    assert schema["ServiceTimeout"] > functions()["MigrateFunction"]["Timeout"]
    for name in WITH_ALIAS:
        assert template()["Resources"][name]["DependsOn"] == "Schema"
        handler = (ROOT / functions()[name]["CodeUri"] / "handler.py").read_text()
        assert "migrate" not in handler


def test_secrets_are_not_shown_by_the_stack() -> None:
    parameters = template()["Parameters"]
    hidden = {name for name, one in parameters.items() if one.get("NoEcho")}
    assert hidden == {
        "DatabaseUrl",
        "BackfillDatabaseUrl",
        "MigrateDatabaseUrl",
        "CallbackDatabaseUrl",
        "WebhookSecret",
    }
    assert not named(template()["Outputs"]) & hidden


def test_every_text_a_parameter_takes_is_constrained() -> None:
    free = {
        name
        for name, one in template()["Parameters"].items()
        if one["Type"] == "String" and not {"AllowedPattern", "AllowedValues"} & set(one)
    }
    assert free == {
        "Channels",
        "DatabaseUrl",
        "BackfillDatabaseUrl",
        "MigrateDatabaseUrl",
        "CallbackDatabaseUrl",
        "WebhookSecret",
    }
    numbers = [one for one in template()["Parameters"].values() if one["Type"] == "Number"]
    assert all({"MinValue", "MaxValue", "AllowedValues"} & set(one) for one in numbers)


def test_every_parameter_stands_in_a_group_and_is_used() -> None:
    groups = template()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    shown = [name for group in groups for name in group["Parameters"]]
    assert sorted(shown) == sorted(template()["Parameters"])
    used = named([template()[part] for part in ("Globals", "Resources", "Conditions")])
    assert set(template()["Parameters"]) <= used


def test_what_everybody_may_call_is_there_only_where_it_is_asked_for() -> None:
    """A public URL that nobody wants is a door nobody watches: all of it stands behind the one condition."""
    resources, outputs = template()["Resources"], template()["Outputs"]
    assert template()["Parameters"]["TwilioCallbacks"]["Default"] in ("off", False)
    public = {name for name, one in functions().items() if "FunctionUrlConfig" in one}
    assert public == {"CallbackFunction"}
    mine = {name for name in resources if name.startswith("Callback")}
    assert len(mine) == 7
    assert {resources[name].get("Condition") for name in mine} == {"HearsTwilio"}
    assert outputs["TwilioCallbackUrl"]["Condition"] == "HearsTwilio"
    function = functions()["CallbackFunction"]
    assert function["DeploymentPreference"]["PassthroughCondition"] is True
    assert function["Timeout"] < 15, "Twilio waits no longer"


def test_the_tick_is_what_the_scheduler_sends() -> None:
    tick = json.loads((ROOT / "events" / "tick.json").read_text())
    assert tick["source"] == "aws.scheduler"
    assert {"id", "time", "resources", "detail-type"} <= set(tick)
