"""The way out for what a run knows and cannot tell the database: messages to an SQS queue."""

from collections.abc import Sequence
from typing import Any

BATCH_MAX = 10  # entries SQS takes in one call
CALL_SECONDS_MAX = 2.0
CALL_SECONDS_MIN = 0.2


class EvidenceQueue:
    """Sends bodies to one queue, each call once: no retry may outlive the invocation."""

    def __init__(self, url: str) -> None:
        self._url = url

    def send(self, bodies: Sequence[str], within_seconds: float) -> int:
        """Send them all; the number the queue took. Never raises for the network or for a refusal."""
        import boto3  # here: it costs more to import than a whole idle run takes
        from botocore.exceptions import BotoCoreError, ClientError

        pages = [bodies[start : start + BATCH_MAX] for start in range(0, len(bodies), BATCH_MAX)]
        taken = 0
        try:
            client = boto3.client("sqs", config=_patience(within_seconds / max(len(pages), 1)))
            for page in pages:
                taken += self._taken(client, page)
        except (BotoCoreError, ClientError):
            return taken
        return taken

    def _taken(self, client: Any, bodies: Sequence[str]) -> int:
        """A batch may be taken in part: what was refused is said once more, alone."""
        refused = self._refused(client, bodies)
        again = self._refused(client, refused) if refused else ()
        return len(bodies) - len(again)

    def _refused(self, client: Any, bodies: Sequence[str]) -> Sequence[str]:
        entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
        answer = client.send_message_batch(QueueUrl=self._url, Entries=entries)
        return [bodies[int(failed["Id"])] for failed in answer.get("Failed", ())]


def _patience(call_seconds: float) -> Any:
    from botocore.config import Config

    seconds = min(CALL_SECONDS_MAX, max(CALL_SECONDS_MIN, call_seconds / 4))
    return Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1})
