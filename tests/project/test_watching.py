"""Alarms and dashboard look at numbers that really exist: those telemetry writes, and those AWS keeps."""

import json
import re
from functools import cache
from typing import Any

import pytest

from fencepost.core.callback import Heard
from fencepost.core.tally import Count
from fencepost.telemetry import Numbers, embedded_metrics
from tests.project.stack import Node, every, functions, of_type, template

OF_AWS = {
    "AWS/Lambda": {"Errors", "Throttles", "Invocations", "Duration", "ConcurrentExecutions"},
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
}
WATCHED = {  # what an operator must hear of → its alarm
    "ticks fail": "DeliverFails",
    "ticks find no room": "DeliverThrottled",
    "nothing ticks": "ScheduleSilent",
    "runs come near their timeout": "DeliverNearTimeout",
    "commands fail": "BackfillFails",
    "commands find no room": "BackfillThrottled",
    "commands come near their timeout": "BackfillNearTimeout",
    "runs do not keep up": "OldestDue",
    "uncertain ones grow": "UncertainGrows",
    "dead ones grow": "DeadGrows",
    "something was delivered twice": "Conflicts",
    "runs lose their leases": "LateSettles",
    "a channel is paused": "ChannelPaused",
    "a channel has no sender here": "ChannelSkipped",
    "too many recipients are said to be gone": "RecipientsGone",
    "a command failed for good": "DeadLettersWait",
    "commands wait": "CommandsWait",
    "a new version of deliver fails": "DeliverVersionFails",
    "a new version of backfill fails": "BackfillVersionFails",
    "callbacks fail": "CallbackFails",
    "callbacks find no room": "CallbackThrottled",
    "callbacks are not believed": "CallbacksRefused",
    "a new version of callback fails": "CallbackVersionFails",
}


def alarms() -> dict[str, Node]:
    return of_type("AWS::CloudWatch::Alarm")


@cache
def written() -> dict[str, Any]:
    """One record with every number there is, as CloudWatch reads it."""
    numbers = Numbers(oldest_due_seconds=1.0, paused_channels=1, send_milliseconds=[1])
    numbers.counts.update(dict.fromkeys(Count, 1))
    numbers.counts.update(dict.fromkeys(Heard, 1))
    said: list[str] = []
    embedded_metrics(said.append, "production")(numbers, "run")
    record: dict[str, Any] = json.loads(said[0])
    (described,) = record["_aws"]["CloudWatchMetrics"]
    assert described["Dimensions"] == [["service"]]
    assert record["service"] == "production"
    return {
        "namespace": described["Namespace"],
        "names": {one["Name"] for one in described["Metrics"]},
    }


def looked_at(alarm: Node) -> list[Node]:
    return [one for one in every(alarm) if isinstance(one, dict) and "MetricName" in one]


def test_everything_that_must_be_heard_of_has_its_alarm() -> None:
    assert set(WATCHED.values()) == set(alarms())


@pytest.mark.parametrize("name", sorted(WATCHED.values()))
def test_an_alarm_looks_at_a_number_that_exists(name: str) -> None:
    for metric in looked_at(alarms()[name]):
        if metric["Namespace"] == written()["namespace"]:
            assert metric["MetricName"] in written()["names"]
            assert metric["Dimensions"] == [{"Name": "service", "Value": {"Ref": "Installation"}}]
        else:
            assert metric["MetricName"] in OF_AWS[metric["Namespace"]]


@pytest.mark.parametrize("name", sorted(WATCHED.values()))
def test_an_alarm_says_what_it_means_and_tells_somebody(name: str) -> None:
    alarm = alarms()[name]
    assert len(alarm["AlarmDescription"]) > 30
    told = {"If": ["Tells", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert (alarm["AlarmActions"], alarm["OKActions"]) == (told, told)
    assert alarm["DatapointsToAlarm"] <= alarm["EvaluationPeriods"]


def test_alarms_on_functions_look_at_what_the_schedule_and_the_queue_invoke() -> None:
    """The alias: a version that nobody invokes never fails."""
    for alarm in alarms().values():
        for metric in looked_at(alarm):
            if metric["Namespace"] == "AWS/Lambda":
                by_name = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
                function = by_name["FunctionName"]["Ref"]
                assert by_name["Resource"] == {"Sub": f"${{{function}}}:live"}


def test_silence_is_an_alarm_only_where_something_must_be_heard() -> None:
    breaching = {name for name, one in alarms().items() if one["TreatMissingData"] == "breaching"}
    assert breaching == {"ScheduleSilent"}
    silent = alarms()["ScheduleSilent"]
    assert (silent["MetricName"], silent["EvaluationPeriods"]) == ("Invocations", 5)
    assert silent["ComparisonOperator"] == "LessThanThreshold"
    assert silent["ActionsEnabled"] == {"If": ["Ticks", "true", "false"]} or silent[
        "ActionsEnabled"
    ] == {"If": ["Ticks", True, False]}


def test_what_failed_for_good_is_counted_where_it_lies() -> None:
    """What SQS moves to a DLQ is never counted as sent to it."""
    (metric,) = looked_at(alarms()["DeadLettersWait"])
    assert metric["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert metric["Dimensions"][0]["Value"] == {"GetAtt": "BackfillDeadLetters.QueueName"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DeliverFunction", "Linear"),
        ("BackfillFunction", "Canary"),
        ("CallbackFunction", "Canary"),
    ],
)
def test_a_deploy_is_gradual_and_its_brake_is_an_alarm_on_the_new_version_alone(
    name: str, kind: str
) -> None:
    """An alarm that the old version has raised would stop the very release that repairs it."""
    preference = functions()[name]["DeploymentPreference"]
    default = template()["Parameters"][preference["Type"]["Ref"]]["Default"]
    assert default.startswith(kind)
    brake = f"{name.removesuffix('Function')}VersionFails"
    assert preference["Alarms"] == [{"Ref": brake}]
    (metric,) = looked_at(alarms()[brake])
    versions = [one for one in metric["Dimensions"] if one["Name"] == "ExecutedVersion"]
    assert versions == [{"Name": "ExecutedVersion", "Value": {"GetAtt": f"{name}.Version.Version"}}]


def test_the_dashboard_shows_numbers_that_exist() -> None:
    (dashboard,) = of_type("AWS::CloudWatch::Dashboard").values()
    body = json.loads(dashboard["DashboardBody"]["Sub"])
    shown = [metric for widget in body["widgets"] for metric in widget["properties"]["metrics"]]
    assert {metric[0] for metric in shown} == {written()["namespace"], *OF_AWS}
    for namespace, name, *_ in shown:
        known = written()["names"] if namespace == written()["namespace"] else OF_AWS[namespace]
        assert name in known, name
    named = set(re.findall(r"\$\{(\w+)", dashboard["DashboardBody"]["Sub"])) - {"AWS"}
    assert named <= {*template()["Resources"], *template()["Parameters"]}
