"""What must hold between two numbers of the stack, in every stage: leases, timeouts, visibility, connections."""

import re

import pytest

from fencepost import settings
from fencepost.core.backfill import RETURN_SECONDS
from fencepost.core.budget import Timing
from fencepost.core.deployment import Concurrency, read_wanted
from tests.project.sources import ROOT
from tests.project.stack import STAGES, functions, given, of_type, template, value, variables

EVERY_STAGE = pytest.mark.parametrize("stage", [None, *STAGES])
DAYS_14 = 14 * 24 * 3600


def timing(function: str, stage: str | None) -> Timing:
    """As the function would read it; impossible ones raise here as they would there."""
    deployed = variables(functions()[function])
    durations = {name: value(deployed[name], stage) for name in settings.DURATIONS.values()}
    environment = {"DATABASE_URL": "postgresql://", "FENCEPOST_INSTALLATION": "test", **durations}
    return settings.read_settings(environment).timing


@EVERY_STAGE
@pytest.mark.parametrize("function", ["DeliverFunction", "BackfillFunction"])
def test_a_send_and_its_settling_fit_into_the_lease_and_the_invocation(
    function: str, stage: str | None
) -> None:
    found = timing(function, stage)
    timeout = float(value(functions()[function]["Timeout"], stage))
    assert found.send_and_settle_seconds < found.lease_seconds
    assert found.send_and_settle_seconds * 2 <= timeout, "else nearly all of a run is its end"
    assert found.lease_seconds <= timeout, "a lease that outlives its run is time lost"


@EVERY_STAGE
def test_a_message_is_hidden_for_six_timeouts(stage: str | None) -> None:
    queue = of_type("AWS::SQS::Queue")["BackfillQueue"]
    timeout = float(value(functions()["BackfillFunction"]["Timeout"], stage))
    assert float(value(queue["VisibilityTimeout"], stage)) >= 6 * timeout


def test_that_holds_for_every_timeout_the_stack_takes() -> None:
    allowed = template()["Parameters"]["BackfillSeconds"]["AllowedValues"]
    times = template()["Mappings"]["BackfillTimes"]
    assert set(times) == set(allowed)
    assert all(times[seconds]["VisibilitySeconds"] >= 6 * int(seconds) for seconds in allowed)


@EVERY_STAGE
def test_all_that_goes_on_at_once_has_its_connections(stage: str | None) -> None:
    schema = template()["Resources"]["Schema"]["Properties"]
    properties = {
        name: value(schema[name], stage)
        for name in ("OverlapMax", "BackfillConcurrency", "ConnectionsMax")
    }
    condition, callbacks, otherwise = schema["CallbackConcurrency"]["If"]
    assert (condition, otherwise) == ("HearsTwilio", 0)
    properties["CallbackConcurrency"] = value(callbacks, stage)  # a stage may turn them on
    limits = read_wanted("test", properties).concurrency
    assert isinstance(limits, Concurrency)
    assert limits.connections <= limits.connections_max


@EVERY_STAGE
def test_what_is_reserved_is_what_the_deploy_step_counts(stage: str | None) -> None:
    reserved = {
        name: value(function["ReservedConcurrentExecutions"], stage)
        for name, function in functions().items()
    }
    assert reserved == {
        "DeliverFunction": given(stage)["OverlapMax"],
        "BackfillFunction": given(stage)["BackfillConcurrency"],
        "MigrateFunction": "1",
        "CallbackFunction": given(stage)["CallbackConcurrency"],
    }
    source = functions()["BackfillFunction"]["Events"]["Commands"]["Properties"]["ScalingConfig"]
    assert int(value(source["MaximumConcurrency"], stage)) <= int(reserved["BackfillFunction"]), (
        "else messages that are throttled are received again, and reach the DLQ unseen"
    )


def test_the_event_source_takes_no_less_than_two() -> None:
    assert template()["Parameters"]["BackfillConcurrency"]["MinValue"] >= 2


def test_both_queues_are_encrypted_and_closed_to_plain_text() -> None:
    queues = of_type("AWS::SQS::Queue")
    assert set(queues) == {"BackfillQueue", "BackfillDeadLetters"}
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    (policy,) = of_type("AWS::SQS::QueuePolicy").values()
    assert {one["Ref"] for one in policy["Queues"]} == set(queues)
    (statement, _) = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_of_other_services_only_those_that_are_named_may_bring_events() -> None:
    """Events are not signed: the queue's policy is what tells whose they are."""
    (policy,) = of_type("AWS::SQS::QueuePolicy").values()
    condition, statement, otherwise = policy["PolicyDocument"]["Statement"][1]["If"]
    assert (condition, otherwise) == ("HearsEvents", {"Ref": "AWS::NoValue"})
    assert statement["Action"] == "sqs:SendMessage"
    assert statement["Resource"] == {"GetAtt": "BackfillQueue.Arn"}
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": "EventsArns"}}}


def test_what_failed_five_times_is_kept_as_long_as_anything_is() -> None:
    queue, letters = (
        of_type("AWS::SQS::Queue")[one] for one in ("BackfillQueue", "BackfillDeadLetters")
    )
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"GetAtt": "BackfillDeadLetters.Arn"}
    assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5
    assert letters["MessageRetentionPeriod"] == DAYS_14
    assert queue["MessageRetentionPeriod"] < letters["MessageRetentionPeriod"], (
        "its age is kept when it moves"
    )
    allow = letters["RedriveAllowPolicy"]
    (source,) = allow["sourceQueueArns"]
    assert allow["redrivePermission"] == "byQueue"
    assert source["Sub"].endswith(f":{queue['QueueName']['Sub']}")


@EVERY_STAGE
def test_the_least_timeout_a_run_may_have_leaves_time_to_send(stage: str | None) -> None:
    least = template()["Parameters"]["RunSeconds"]["MinValue"]
    assert timing("DeliverFunction", None).send_and_settle_seconds < least


def test_a_run_that_may_be_cut_at_its_last_words_is_seen_before() -> None:
    """The alarm counts with the same share of the settle reserve as the budget."""
    alarm = of_type("AWS::CloudWatch::Alarm")["DeliverNearTimeout"]
    expression = next(one["Expression"]["Sub"] for one in alarm["Metrics"] if "Expression" in one)
    share = re.search(r"\$\{SettleReserveSeconds\} / (\d+)", expression)
    budget = (ROOT / "shared/fencepost/core/budget.py").read_text()
    assert share
    assert f"settle_reserve_seconds / {share[1]}.0" in budget


def test_a_batch_that_uses_all_the_time_it_may_is_no_alarm() -> None:
    """A long command, or a drain, goes on as long as it may: only what comes after that is late, in every timeout."""
    alarm = of_type("AWS::CloudWatch::Alarm")["BackfillNearTimeout"]
    expression = next(one["Expression"]["Sub"] for one in alarm["Metrics"] if "Expression" in one)
    kept = re.fullmatch(r"longest / \(1000 \* \(\$\{BackfillSeconds\} - (\d+)\)\)", expression)
    assert kept
    assert 0 < int(kept[1]) < RETURN_SECONDS


def test_the_deploy_step_waits_for_what_the_proxy_stands_before() -> None:
    properties = template()["Resources"]["Schema"]["Properties"]
    assert properties["ProxyTargets"] == {
        "If": ["WithProxy", {"Ref": "DatabaseProxyTargets"}, "none"]
    }


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_says_only_what_the_template_asks_for(stage: str) -> None:
    parameters = template()["Parameters"]
    for name, said in given(stage).items():
        rule = parameters[name]
        assert not rule.get("NoEcho") or said == "", f"{name}: no secret belongs into a file"
        if "AllowedPattern" in rule:
            assert re.fullmatch(rule["AllowedPattern"], said), (name, said)
        if "AllowedValues" in rule:
            assert said in [str(one) for one in rule["AllowedValues"]], (name, said)
        if rule["Type"] == "Number":
            assert (
                float(rule.get("MinValue", said))
                <= float(said)
                <= float(rule.get("MaxValue", said))
            )
    assert set(parameters) - set(given(stage)) == {"ReleaseHash"}
