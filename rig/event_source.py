"""SQS and S3 of this machine (moto's server), and what Lambda's event source mapping does between a queue and runtimes.

As on AWS: batches go to idle runtimes, as many at once as there are; what a batch's answer does not name is deleted;
of a batch that failed, timed out or died nothing is, and it comes back after the visibility timeout; a message that
was received too often goes to the DLQ. Unlike AWS: no scaling of pollers, no back-off after errors; and where a queue
says `back_seconds`, what comes back does so that long after its invocation, however long it would have been hidden.
"""

import contextlib
import json
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config

from rig.invoked import Invoked
from rig.runtimes import Runtime

REGION = "us-east-1"
WAIT_SECONDS = 1
JOIN_SECONDS = 90.0
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@dataclass(frozen=True, slots=True)
class Cloud:
    """A place with SQS and S3. `environment` is what a runtime needs to find it."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": self.url, "AWS_DEFAULT_REGION": REGION}

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"total_max_attempts": 2}, max_pool_connections=20),
        )


@contextlib.contextmanager
def local_cloud() -> Iterator[Cloud]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield Cloud(f"http://{host}:{port}")
    finally:
        server.stop()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its DLQ."""

    sqs: Any
    url: str
    dlq_url: str
    back_seconds: int | None = None

    @classmethod
    def create(
        cls,
        cloud: Cloud,
        *,
        visibility_seconds: int,
        receives_max: int,
        back_seconds: int | None = None,
    ) -> "Queue":
        sqs = cloud.client("sqs")
        dlq_url = sqs.create_queue(QueueName="backfill-dlq")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dlq_url, AttributeNames=["QueueArn"])
        redrive = {
            "deadLetterTargetArn": arn["Attributes"]["QueueArn"],
            "maxReceiveCount": receives_max,
        }
        attributes = {
            "VisibilityTimeout": str(visibility_seconds),
            "RedrivePolicy": json.dumps(redrive),
        }
        url = sqs.create_queue(QueueName="backfill", Attributes=attributes)["QueueUrl"]
        return cls(sqs, url, dlq_url, back_seconds)

    def send(self, *bodies: Mapping[str, Any] | str) -> None:
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            self.sqs.send_message(QueueUrl=self.url, MessageBody=text)

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Those messages come back so long from now."""
        for receipt in receipts:
            with contextlib.suppress(
                self.sqs.exceptions.ClientError
            ):  # it is back, or gone, already
                self.sqs.change_message_visibility(
                    QueueUrl=self.url, ReceiptHandle=receipt, VisibilityTimeout=seconds
                )

    def count(self, url: str | None = None) -> int:
        """Messages there, those out with somebody included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self.sqs.get_queue_attributes(QueueUrl=url or self.url, AttributeNames=names)
        return sum(int(told["Attributes"][name]) for name in names)

    def dead(self) -> int:
        return self.count(self.dlq_url)

    def bring_back(self) -> int:
        """A DLQ redrive: all its messages, back to the queue."""
        moved = 0
        while found := self._receive_dead():
            for message in found:
                self.send(message["Body"])
                receipt = message["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=self.dlq_url, ReceiptHandle=receipt)
                moved += 1
        return moved

    def _receive_dead(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.sqs.receive_message(
            QueueUrl=self.dlq_url, MaxNumberOfMessages=10
        ).get("Messages", [])
        return found


@dataclass(frozen=True, slots=True)
class Delivery:
    """One invocation: which messages, and what came of it."""

    messages: tuple[str, ...]
    bodies: tuple[str, ...] = field(repr=False)
    invoked: Invoked

    @property
    def failed(self) -> set[str] | None:
        """Ids that come back; None: all of them, because there is no answer to go by."""
        summary = self.invoked.summary
        if summary is None:
            return None
        named = {one.get("itemIdentifier") for one in summary.get("batchItemFailures") or ()}
        return None if named - set(self.messages) else {str(one) for one in named}


class EventSource:
    """Polls while it is open. The runtimes are its own: as many batches at once as there are of them."""

    def __init__(self, queue: Queue, runtimes: Sequence[Runtime], *, batch_size: int = 10) -> None:
        self._queue = queue
        self._batch_size = batch_size
        self._idle = _idle(runtimes)
        self._stop = threading.Event()
        self._pollers = [threading.Thread(target=self._poll, daemon=True) for _ in runtimes]
        self.deliveries: list[Delivery] = []
        self._out: list[str] = []

    def let_go(self) -> None:
        """What is out comes back now, as when the time that it is hidden is over before its invocation is."""
        self._queue.hide(list(self._out), 0)

    def __enter__(self) -> "EventSource":
        for poller in self._pollers:
            poller.start()
        return self

    def __exit__(self, *_: object) -> None:
        """The batches under way end first."""
        self._stop.set()
        for poller in self._pollers:
            poller.join(JOIN_SECONDS)

    def _poll(self) -> None:
        while not self._stop.is_set():
            messages = self._queue.sqs.receive_message(
                QueueUrl=self._queue.url,
                MaxNumberOfMessages=self._batch_size,
                WaitTimeSeconds=WAIT_SECONDS,
                MessageSystemAttributeNames=["All"],
            ).get("Messages", [])
            if messages:
                self._deliver(messages)

    def _deliver(self, messages: list[dict[str, Any]]) -> None:
        receipts = [one["ReceiptHandle"] for one in messages]
        runtime = self._idle.get()
        self._out.extend(receipts)
        try:
            invoked = runtime.invoke(event_of(messages))
        finally:
            self._idle.put(runtime)
        self._out = [one for one in self._out if one not in receipts]
        ids = tuple(one["MessageId"] for one in messages)
        delivery = Delivery(ids, tuple(one["Body"] for one in messages), invoked)
        self.deliveries.append(delivery)
        failed = set(ids) if delivery.failed is None else delivery.failed
        done = [one["ReceiptHandle"] for one in messages if one["MessageId"] not in failed]
        entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(done)]
        if entries:
            self._queue.sqs.delete_message_batch(QueueUrl=self._queue.url, Entries=entries)
        if self._queue.back_seconds is not None:
            self._queue.hide(list(set(receipts) - set(done)), self._queue.back_seconds)


def event_of(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The event Lambda makes of received messages."""
    return {"Records": [_record(message) for message in messages]}


def _record(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:123456789012:backfill",
        "awsRegion": REGION,
    }


def _idle(runtimes: Sequence[Runtime]) -> "queue.SimpleQueue[Runtime]":
    idle: queue.SimpleQueue[Runtime] = queue.SimpleQueue()
    for runtime in runtimes:
        idle.put(runtime)
    return idle
