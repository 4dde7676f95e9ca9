"""The way out for the answer CloudFormation waits for: one PUT to the signed URL it gave."""

import http.client
import ssl
from urllib.parse import urlsplit

TRIES = 3  # an answer that does not arrive keeps the stack waiting until its own timeout
SECONDS_MAX = 5.0
TAKEN = range(200, 300)


class AnswerNotTaken(Exception):
    """CloudFormation did not take the answer: one line, without the URL."""


def put_answer(url: str, body: bytes, within_seconds: float) -> None:
    """Says it up to three times; saying it twice is harmless. Raises `AnswerNotTaken`."""
    why = "no time left"
    for _ in range(TRIES):
        try:
            status = _put(url, body, max(min(SECONDS_MAX, within_seconds / TRIES), 0.2))
        except (OSError, http.client.HTTPException) as error:
            why = type(error).__name__
            continue
        if status in TAKEN:
            return
        why = f"status {status}"
    raise AnswerNotTaken(f"the answer to CloudFormation was not taken: {why}")


def _put(url: str, body: bytes, seconds: float) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(
        parts.netloc, timeout=seconds, context=ssl.create_default_context()
    )
    try:
        # The URL is signed for an empty content type; any other is refused.
        headers = {"Content-Type": "", "Content-Length": str(len(body))}
        connection.request("PUT", f"{parts.path}?{parts.query}", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
