"""Evidence messages reach SQS, and a queue that does not answer costs no more than the time there is."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from fencepost.senders.evidence_queue import EvidenceQueue

BOTO_SECONDS = 60.0  # what the SDK waits for an answer where it is not told


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs")


def bodies_in(sqs: Any, url: str) -> list[str]:
    found: list[str] = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [message["Body"] for message in messages]
    return found


def test_every_message_arrives_once_whatever_their_number(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="evidence")["QueueUrl"]
    bodies = [f'{{"number":{number}}}' for number in range(23)]
    assert EvidenceQueue(url).send(bodies, within_seconds=2.0) == bodies
    assert sorted(bodies_in(sqs, url)) == sorted(bodies)


def test_a_queue_that_is_not_there_takes_nothing_and_raises_nothing(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="evidence")["QueueUrl"]
    sqs.delete_queue(QueueUrl=url)
    assert EvidenceQueue(url).send(["{}"], within_seconds=2.0) == []


def said(client: Any, bodies: list[str], before: int = 0, apart: int = 0) -> list[str]:
    taken = ["x"] * before
    EvidenceQueue("url")._say(client, bodies, taken, apart)
    return taken[before:]


def test_messages_are_seen_one_after_the_other_where_that_is_asked_for() -> None:
    client = RefusingClient(refusals=0)
    assert said(client, ["a", "c", "d"], 10, 1) == ["a", "c", "d"]
    assert client.delays == [10, 11, 12]
    said(client, ["a", "c"], 899, 1)
    assert client.delays[3:] == [899, 900]
    said(client, ["a", "c"], 900, 1)
    assert client.delays[5:] == [900, 900], "SQS hides no message longer"


def test_pages_go_on_where_the_one_before_ended(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="evidence")["QueueUrl"]
    assert len(EvidenceQueue(url).send(["{}"] * 11, 2.0, apart_seconds=60)) == 11
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert told["ApproximateNumberOfMessages"] == "1"
    assert told["ApproximateNumberOfMessagesDelayed"] == "10"


def test_a_message_the_queue_refuses_is_said_once_more_alone() -> None:
    client = RefusingClient(refusals=1)
    assert said(client, ["a", "b", "c"]) == ["a", "c", "b"]
    assert client.calls == [["a", "b", "c"], ["b"]]


def test_a_message_the_queue_refuses_twice_is_not_counted_as_taken() -> None:
    assert said(RefusingClient(refusals=2), ["a", "b", "c"]) == ["a", "c"]


def test_what_was_taken_before_a_call_failed_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a wave, or what a run knew, would count as lost although most of it left."""
    client = RefusingClient(refusals=1, answers=1)
    queue = EvidenceQueue("url")
    monkeypatch.setattr(queue, "_client", lambda seconds: client)
    assert queue.send(["a", "b", "c"], within_seconds=1.0) == ["a", "c"]


def test_a_queue_that_does_not_answer_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", url)
        boto3.client("sqs")  # its import and its data files are not what is timed here
        began = time.monotonic()
        assert EvidenceQueue(f"{url}/1/evidence").send(["{}"], within_seconds=1.2) == []
        assert time.monotonic() - began < BOTO_SECONDS / 2, "it is told how long to wait"
        deaf.setblocking(False)
        deaf.accept()[0].close()
        with pytest.raises(BlockingIOError):
            deaf.accept()  # one try


class RefusingClient:
    """Refuses the entry `b` a number of times, and answers so many calls."""

    def __init__(self, refusals: int, answers: int = 99) -> None:
        self.refusals = refusals
        self.answers = answers
        self.calls: list[list[str]] = []
        self.delays: list[int] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> Any:
        if not self.answers:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        self.answers -= 1
        self.delays += [entry.get("DelaySeconds", 0) for entry in Entries]
        self.calls.append([entry["MessageBody"] for entry in Entries])
        failed = [entry for entry in Entries if entry["MessageBody"] == "b" and self.refusals]
        self.refusals -= bool(failed)
        return {"Failed": [{"Id": entry["Id"]} for entry in failed]}
