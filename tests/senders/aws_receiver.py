"""AWS's side of a request: judges its signature from the specification alone, and says what AWS says.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fencepost.core.reply import Phase, Reply
from tests.senders.peers import Asked, Headers, Script
from tests.senders.peers import Peer as Peer

KEYS = {
    "access_key_id": "AKIDEXAMPLE",
    "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}
SECRET = json.dumps(KEYS)
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/]+)/(?P<scope>[^,]+), "
    r"SignedHeaders=(?P<names>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
SKEW_MAX = timedelta(minutes=15)


@dataclass(frozen=True)
class Judged:
    """Of a request's `authorization`."""

    access_key_id: str
    region: str
    service: str
    signed: frozenset[str]
    right: bool


def judge(asked: Asked, secret_access_key: str = KEYS["secret_access_key"]) -> Judged:
    """Raises where there is none, or where its time is not the machine's."""
    said = AUTHORIZATION.fullmatch(asked.headers["authorization"])
    assert said, "no authorization of version 4"
    at = asked.headers["x-amz-date"]
    date, region, service, _ = said["scope"].split("/")
    assert date == at[:8]
    canonical = canonical_request(asked, said["names"].split(";"))
    to_sign = "\n".join(["AWS4-HMAC-SHA256", at, said["scope"], _sha256(canonical.encode())])
    key = f"AWS4{secret_access_key}".encode()
    for part in (*said["scope"].split("/"), to_sign):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signed = frozenset(said["names"].split(";"))
    return Judged(said["id"], region, service, signed, key.hex() == said["signature"])


def canonical_request(asked: Asked, names: list[str]) -> str:
    known = {
        **asked.headers,
        "host": asked.headers.get("host", asked.headers.get(":authority", "")),
    }
    path, _, query = asked.headers[":path"].partition("?")
    headers = "".join(f"{name}:{' '.join(known[name].split())}\n" for name in names)
    lines = [asked.headers[":method"], path, query, headers, ";".join(names), _sha256(asked.body)]
    return "\n".join(lines)


def current(asked: Asked) -> bool:
    """Whether the request was signed about now."""
    at = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return abs(datetime.now(UTC) - at) < SKEW_MAX


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- what AWS answers ---


def xml_fault(code: str, message: str = "why") -> bytes:
    """The query protocol's (SNS)."""
    return (
        '<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>r-1</RequestId></ErrorResponse>"
    ).encode()


def json_fault(code: str, message: str = "why") -> tuple[bytes, Headers]:
    """rest-json's (SES v2): the code in a header, with the namespace some services add."""
    return json.dumps({"message": message}).encode(), (
        ("x-amzn-errortype", f"{code}:http://internal.amazon.com/"),
    )


def answered(status: int, body: bytes = b"", headers: Mapping[str, str] | Headers = ()) -> Reply:
    return Reply(phase=Phase.ANSWERED, status=status, headers=dict(headers), body=body)


def says(*answers: tuple[int, bytes, Headers]) -> Script:
    """A script: these answers in turn, the last one for ever."""
    left = list(answers)

    async def script(peer: Any) -> None:
        while True:
            asked = await peer.request()
            status, body, headers = left.pop(0) if len(left) > 1 else left[0]
            await peer.answer(asked, status, body, headers)

    return script
