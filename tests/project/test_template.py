"""The template deploys what the code expects: the same variables, no retries but ours, bytecode in the layers."""

import json
import re
from functools import cache
from typing import Any

import yaml

from fencepost import settings
from tests.project.sources import ROOT


class Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, which are kept as what they are applied to."""


def _short_form(loader: Loader, tag: str, node: yaml.Node) -> Any:
    match node:
        case yaml.ScalarNode():
            return {tag: loader.construct_scalar(node)}
        case yaml.SequenceNode():
            return {tag: loader.construct_sequence(node, deep=True)}
        case yaml.MappingNode():
            return {tag: loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", _short_form)


@cache
def template() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), Loader)
    return loaded


def functions() -> dict[str, Any]:
    resources = template()["Resources"].items()
    return {
        name: one["Properties"]
        for name, one in resources
        if one["Type"] == "AWS::Serverless::Function"
    }


def variables(function: dict[str, Any]) -> dict[str, Any]:
    shared = template()["Globals"]["Function"]["Environment"]["Variables"]
    return {**shared, **function.get("Environment", {}).get("Variables", {})}


def test_every_function_has_its_file_and_a_log_group_that_forgets() -> None:
    assert set(functions()) == {"DeliverFunction"}
    for function in functions().values():
        module, name = function["Handler"].split(".")
        text = (ROOT / function["CodeUri"] / f"{module}.py").read_text()
        assert f"def {name}(event" in text
        logs = template()["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
        assert "RetentionInDays" in logs["Properties"]


def test_the_variables_of_the_template_are_those_of_the_settings() -> None:
    known = {
        settings.DATABASE_URL,
        settings.INSTALLATION,
        settings.CHANNELS,
        settings.QUEUE_URL,
        *settings.DURATIONS.values(),
    }
    given = set(variables(functions()["DeliverFunction"]))
    ours = {name for name in given if name.startswith("FENCEPOST_") or name == "DATABASE_URL"}
    assert ours == known


def test_the_defaults_of_the_template_are_possible_together() -> None:
    parameters = template()["Parameters"]
    given = {"DATABASE_URL": "postgresql://", "FENCEPOST_INSTALLATION": "test"}
    for name, value in variables(functions()["DeliverFunction"]).items():
        if name in settings.DURATIONS.values():
            said = parameters[value["Ref"]]["Default"] if isinstance(value, dict) else value
            given[name] = str(said)
    assert set(settings.DURATIONS.values()) <= set(given)
    timing = settings.read_settings(given).timing
    assert timing.send_and_settle_seconds < parameters["RunSeconds"]["MinValue"]


def test_only_the_next_tick_tries_again() -> None:
    deliver = functions()["DeliverFunction"]
    assert deliver["EventInvokeConfig"]["MaximumRetryAttempts"] == 0
    tick = deliver["Events"]["Tick"]
    assert tick["Type"] == "ScheduleV2"
    assert tick["Properties"]["RetryPolicy"]["MaximumRetryAttempts"] == 0


def test_every_layer_is_built_with_its_bytecode_for_the_runtime_it_serves() -> None:
    runtime = template()["Globals"]["Function"]["Runtime"]
    layers = {
        name: one
        for name, one in template()["Resources"].items()
        if one["Type"] == "AWS::Serverless::LayerVersion"
    }
    assert [{"Ref": name} for name in layers] == template()["Globals"]["Function"]["Layers"]
    for name, layer in layers.items():
        assert layer["Metadata"]["BuildMethod"] == "makefile"
        assert layer["Properties"]["CompatibleRuntimes"] == [runtime]
        recipe = (ROOT / layer["Properties"]["ContentUri"] / "Makefile").read_text()
        assert f"build-{name}:" in recipe
        assert re.search(rf"^PYTHON := {runtime}$", recipe, re.MULTILINE)
        assert "compileall" in recipe


def test_secrets_are_not_shown_by_the_stack() -> None:
    parameters = template()["Parameters"]
    assert all(parameters[name]["NoEcho"] for name in ("DatabaseUrl", "WebhookSecret"))


def test_the_tick_is_what_the_scheduler_sends() -> None:
    tick = json.loads((ROOT / "events" / "tick.json").read_text())
    assert tick["source"] == "aws.scheduler"
    assert {"id", "time", "resources", "detail-type"} <= set(tick)
