"""A sender that owes nothing to the product: signs after the specification and reads what comes."""

import base64
import hashlib
import hmac
import http.client
import time
from urllib.parse import urlsplit

from rig.receiver import SECRET

BODY = b'{"title":"one"}'


class Sender:
    """One kept connection to a provider."""

    def __init__(self, url: str, timeout_seconds: float = 30) -> None:
        where = urlsplit(url)
        assert where.hostname is not None
        self.connection = http.client.HTTPConnection(
            where.hostname, where.port, timeout=timeout_seconds
        )

    def send(
        self, path: str, key: str, body: bytes = BODY, secret: str = SECRET
    ) -> tuple[int, dict[str, str]]:
        self.connection.request("POST", path, body, signed(key, body, secret))
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def close(self) -> None:
        self.connection.close()


def signed(key: str, body: bytes, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    raw = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(raw, b".".join((key.encode(), stamp.encode(), body)), hashlib.sha256)
    return {
        "webhook-id": key,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1,c29tZXRoaW5nIGVsc2U= v1," + base64.b64encode(digest).decode(),
    }
