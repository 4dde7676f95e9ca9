"""The way out for what a run knows and cannot tell the database: messages to an SQS queue."""

from collections.abc import Sequence
from typing import Any

BATCH_MAX = 10  # entries SQS takes in one call
BATCH_BYTES_MAX = 240_000  # all of them together, where it is strictest
DELAY_SECONDS_MAX = 900  # as long as SQS hides a new message
CALL_SECONDS_MAX = 2.0
CALL_SECONDS_MIN = 0.2


class EvidenceQueue:
    """Sends bodies to one queue, each call once: no retry may outlive the invocation."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[float, Any] = {}  # by patience
        self.trouble: str | None = None  # why the last call took less than all, in a word of AWS's

    def send(
        self, bodies: Sequence[str], within_seconds: float, *, apart_seconds: int = 0
    ) -> Sequence[str]:
        """Send them all; those the queue took. Never raises for the network or for a refusal.

        `apart_seconds`: each is seen so much later than the one before (0 to 15 minutes in all)."""
        from botocore.exceptions import BotoCoreError, ClientError  # here: dear to import

        pages = _pages(bodies)
        taken: list[str] = []
        try:
            client = self._client(within_seconds / max(len(pages), 1))
            for page in pages:
                self._say(client, page, taken, apart_seconds)
        except ClientError as error:
            self.trouble = str(error.response.get("Error", {}).get("Code"))
        except BotoCoreError as error:
            self.trouble = type(error).__name__
        return taken

    def _client(self, call_seconds: float) -> Any:
        import boto3

        seconds = min(CALL_SECONDS_MAX, max(CALL_SECONDS_MIN, call_seconds / 4))
        if seconds not in self._clients:
            self._clients = {seconds: boto3.client("sqs", config=_patience(seconds))}
        return self._clients[seconds]

    def _say(self, client: Any, bodies: Sequence[str], taken: list[str], apart: int = 0) -> None:
        """A batch may be taken in part: what was refused is said once more, alone."""
        refused = self._said(client, bodies, taken, apart)
        if refused:
            self._said(client, refused, taken, apart)

    def _said(
        self, client: Any, bodies: Sequence[str], taken: list[str], apart: int
    ) -> Sequence[str]:
        """Notes what was taken, at once: the next call may raise. Answers what was refused."""
        first = len(taken) * apart
        entries = [_entry(place, body, first + place * apart) for place, body in enumerate(bodies)]
        answer = client.send_message_batch(QueueUrl=self._url, Entries=entries)
        refused = {int(failed["Id"]) for failed in answer.get("Failed", ())}
        taken += [body for place, body in enumerate(bodies) if place not in refused]
        return [bodies[place] for place in sorted(refused)]


def _pages(bodies: Sequence[str]) -> list[list[str]]:
    """As many a call as SQS takes."""
    pages: list[list[str]] = []
    size = 0
    for body in bodies:
        size += len(body.encode())
        if not pages or len(pages[-1]) == BATCH_MAX or size > BATCH_BYTES_MAX:
            pages.append([])
            size = len(body.encode())
        pages[-1].append(body)
    return pages


def _entry(place: int, body: str, delay_seconds: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(place), "MessageBody": body}
    if delay_seconds:
        entry["DelaySeconds"] = min(delay_seconds, DELAY_SECONDS_MAX)
    return entry


def _patience(seconds: float) -> Any:
    from botocore.config import Config

    return Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1})
