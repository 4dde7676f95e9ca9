"""Each role allows what its function calls, and what the platform does in its name: no more, and on one resource."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.calls import actions_of
from tests.project.stack import Node, every, functions, named, of_type, template

ENTRIES = {
    "DeliverFunction": "deliver",
    "BackfillFunction": "backfill",
    "MigrateFunction": "migrate",
    "CallbackFunction": "callback",
}
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
EVENT_SOURCE = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
OF_THE_PLATFORM = {
    "DeliverFunction": LOGS,
    "BackfillFunction": LOGS | EVENT_SOURCE,
    "MigrateFunction": LOGS,
    "CallbackFunction": LOGS,
}
WITHIN = {  # action → what its resource must name, and nothing else that could be meant
    "logs": {"Logs"},
    "sqs": {"BackfillQueue"},
    "s3": {"BackfillBucket"},
    "secretsmanager": {"SecretArn"},
    "rds-db": {"User"},
    "ses": {"MailArns"},
    "sns": {"PushArns"},
    "sms-voice": {"TextArns"},
}
OF_ALL = ("Backfill", "Mail", "Push", "Text")  # what is not one function's own
OF_CHANNELS = {"ChannelSecretArns", "ChannelParameterArns"}
READS_SECRETS = {"secretsmanager:GetSecretValue", "ssm:GetParameter"}
PHONES = {  # a number is no ARN: what is no ARN of SNS is every number, and neither topic nor app
    "Effect": "Allow",
    "Action": "sns:Publish",
    "NotResource": {"Sub": "arn:${AWS::Partition}:sns:*:*:*"},
}
EVERY_FUNCTION = pytest.mark.parametrize("name", ENTRIES)


def role_of(name: str) -> Node:
    role: Node = of_type("AWS::IAM::Role")[functions()[name]["Role"]["GetAtt"].removesuffix(".Arn")]
    return role


def statements(node: Any) -> Iterator[Node]:
    for one in every(node):
        if isinstance(one, dict) and "Effect" in one:
            yield one


def actions(statement: Node) -> set[str]:
    said = statement["Action"]
    return set(said) if isinstance(said, list) else {said}


@EVERY_FUNCTION
def test_a_role_allows_what_its_function_calls(name: str) -> None:
    allowed = {one for each in statements(role_of(name)["Policies"]) for one in actions(each)}
    assert allowed == actions_of(ENTRIES[name]) | OF_THE_PLATFORM[name]


def test_the_calls_are_found_where_they_are_known_to_be() -> None:
    """Else the comparison would hold for a search that finds nothing."""
    reaches_database = {"rds-db:connect", "secretsmanager:GetSecretValue"}
    assert actions_of("migrate") == reaches_database
    sends = {
        "ssm:GetParameter",
        "sqs:SendMessage",
        "ses:SendEmail",
        "ses:SendRawEmail",
        "sns:Publish",
        "sms-voice:SendTextMessage",
    }
    assert actions_of("callback") == reaches_database | {"ssm:GetParameter"}
    assert actions_of("deliver") == reaches_database | sends
    assert actions_of("backfill") == actions_of("deliver") | {"s3:GetObject", "s3:GetObjectVersion"}


@EVERY_FUNCTION
def test_every_statement_is_about_this_functions_own_resource(name: str) -> None:
    for statement in statements(role_of(name)["Policies"]):
        assert statement["Effect"] == "Allow"
        if "NotResource" in statement:
            assert statement == PHONES
            continue
        if named(statement["Resource"]) <= OF_CHANNELS:
            assert actions(statement) <= READS_SECRETS
            continue
        for action in actions(statement):
            service, _, verb = action.partition(":")
            assert "*" not in verb
            mine = name.removesuffix("Function")
            expected = {
                part if part.startswith(OF_ALL) else f"{mine}{part}" for part in WITHIN[service]
            }
            assert expected <= named(statement["Resource"]), (action, statement["Resource"])
            others = {f"{one.removesuffix('Function')}" for one in ENTRIES} - {mine}
            foreign = {
                f"{other}{part}" for other in others for part in ("Logs", "User", "SecretArn")
            }
            assert not foreign & named(statement["Resource"])


@EVERY_FUNCTION
def test_only_lambda_takes_these_roles(name: str) -> None:
    (trust,) = statements(role_of(name)["AssumeRolePolicyDocument"])
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert role_of(name)["ManagedPolicyArns"]["If"][:2] == ["InVpc", [{"Ref": "NetworkInterfaces"}]]


def test_the_only_wildcard_is_for_network_interfaces_and_not_for_the_code() -> None:
    wide = [
        (name, one)
        for name, resource in template()["Resources"].items()
        if resource["Type"].startswith("AWS::IAM::")
        for one in statements(resource["Properties"])
        if one.get("Resource") == "*"
    ]
    assert {name for name, _ in wide} == {"NetworkInterfaces"}
    allow, deny = (one for _, one in wide)
    assert (allow["Effect"], deny["Effect"]) == ("Allow", "Deny")
    assert all(action.startswith("ec2:") for action in actions(allow))
    assert set(deny["Condition"]["ArnLike"]) == {"lambda:SourceFunctionArn"}


CONDITIONS = {
    "mail-send": "SendsMail",
    "push-send": "SendsPush",
    "text-send": "SendsText",
    "sms-send": "SendsTextBySns",
    "channel-secrets": "KeepsSecrets",
    "channel-parameters": "KeepsParameters",
}


@pytest.mark.parametrize("policy", CONDITIONS)
def test_a_way_out_that_nobody_asked_for_is_closed(policy: str) -> None:
    for name in ("DeliverFunction", "BackfillFunction"):
        (chosen,) = (
            one["If"]
            for one in role_of(name)["Policies"]
            if "If" in one and one["If"][1].get("PolicyName") == policy
        )
        assert chosen[0] == CONDITIONS[policy]
        assert chosen[2] == {"Ref": "AWS::NoValue"}
    for parameter in ("MailArns", "PushArns", "TextArns", "SendsSms", *sorted(OF_CHANNELS)):
        assert template()["Parameters"][parameter]["Default"] in ("", "false")
