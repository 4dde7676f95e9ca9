"""A queue, a bucket and runtimes of the backfill function, for its drills."""

import json
import uuid
from pathlib import Path
from typing import Any

from rig.event_source import Cloud, Queue, event_of
from rig.ground import ROOT, wait_until
from rig.receiver import SECRET
from rig.runtimes import Runtime
from tests.drills.ground import FUNCTION_SECONDS, INSTALLATION, TIMING, Ground

TASK_ROOT = ROOT / "functions" / "backfill"
VISIBILITY_SECONDS = 180  # longer than any invocation here
BACK_SECONDS = 2  # nobody waits three minutes for what failed
RECEIVES_MAX = 30  # a slow machine needs the later chances


class Yard:
    """A drill's queue, bucket and runtimes of the backfill function."""

    def __init__(
        self, ground: Ground, cloud: Cloud, folder: Path, *, receives_max: int = RECEIVES_MAX
    ) -> None:
        self.ground, self.cloud, self.folder = ground, cloud, folder
        self.s3 = cloud.client("s3")
        self.bucket = f"rows-{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=self.bucket)
        self.queue = Queue.create(
            cloud,
            visibility_seconds=VISIBILITY_SECONDS,
            receives_max=receives_max,
            back_seconds=BACK_SECONDS,
        )
        self.runtimes: list[Runtime] = []

    def runtime(self, *, timeout_seconds: int = FUNCTION_SECONDS, **changes: str) -> Runtime:
        environment = {
            **self.cloud.environment,
            "DATABASE_URL": self.ground.url,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "FENCEPOST_QUEUE_URL": self.queue.url,
            "DRILL_SECRET": SECRET,
            **TIMING,
            **changes,
        }
        runtime = Runtime(
            environment,
            timeout_seconds=timeout_seconds,
            folder=self.folder,
            name=f"backfill-{len(self.runtimes) + 1}",
            task_root=TASK_ROOT,
        )
        self.runtimes.append(runtime)
        return runtime.start()

    def file(self, count: int) -> dict[str, Any]:
        """An enqueue of a file of so many lines."""
        line = json.dumps({"channel": "way", "recipient": "r", "payload": {"title": "t"}})
        body = "".join(f"{line}\n" for _ in range(count)).encode()
        key = f"{count}.jsonl"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)
        return command("enqueue", s3={"bucket": self.bucket, "key": key})

    def warm(self, runtime: Runtime) -> Runtime:
        """A cold start would eat into the time it has, and on a slow machine all of it."""
        message = {"MessageId": "0", "ReceiptHandle": "0", "Body": json.dumps(self.file(0))}
        done = {"batchItemFailures": list[str]()}
        wait_until(lambda: runtime.invoke(event_of([message])).summary == done, 30, "a warm start")
        self.ground.connection.execute("delete from fencepost.command")
        return runtime

    def quiet(self) -> bool:
        return self.queue.count() == 0

    def end(self) -> None:
        for runtime in self.runtimes:
            runtime.end()
        self.queue.sqs.delete_queue(QueueUrl=self.queue.url)
        self.queue.sqs.delete_queue(QueueUrl=self.queue.dlq_url)


def command(name: str, **words: Any) -> dict[str, Any]:
    return {"version": 1, "command": name, "id": str(uuid.uuid4()), **words}


def rows(count: int, channel: str = "way") -> dict[str, Any]:
    row = {"channel": channel, "recipient": "r", "payload": {"title": "t"}}
    return command("enqueue", rows=[row] * count)
