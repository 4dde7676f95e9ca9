"""CloudFormation as a custom resource meets it: an event with a signed URL, and a server that waits for the answer."""

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

SIGNED = "X-Amz-Signature=not-for-the-log"
STACK = "arn:aws:cloudformation:eu-central-1:123456789012:stack/fencepost/5f2c"


@dataclass
class Answer:
    """One PUT, as it arrived."""

    path: str
    content_type: str | None
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told


@dataclass
class CloudFormation:
    """`statuses`: what the next answers are met with; 200 afterwards."""

    url: str
    ca_file: Path
    answers: list[Answer] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def event(self, change: str = "Create", **properties: str) -> dict[str, Any]:
        event: dict[str, Any] = {
            "RequestType": change,
            "ResponseURL": f"{self.url}/answer?{SIGNED}",
            "StackId": STACK,
            "RequestId": "request-7",
            "ResourceType": "Custom::FencepostSchema",
            "LogicalResourceId": "Schema",
            "ResourceProperties": {"ServiceToken": "arn:aws:lambda:…", **properties},
        }
        if change != "Create":
            event["PhysicalResourceId"] = "5f2c-Schema"
        return event


@contextmanager
def cloudformation(folder: Path) -> Iterator[CloudFormation]:
    """Over TLS: whoever calls must trust `ca_file`."""
    authority = trustme.CA()
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(trust)
    ca_file = folder / "cloudformation-ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Waiting) as server:
        server.socket = trust.wrap_socket(server.socket, server_side=True)
        told = CloudFormation(url=f"https://127.0.0.1:{server.server_port}", ca_file=ca_file)
        server.told = told  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


class _Waiting(http.server.BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        told: CloudFormation = self.server.told  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told.answers.append(Answer(self.path, self.headers["Content-Type"], body))
        self.send_response(told.statuses.pop(0) if told.statuses else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
