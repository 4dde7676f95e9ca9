"""`python -m rig.push FOLDER`: a push service that speaks FCM's HTTP v1 over h2, with the token service before it.

It grants an access token for the signed word of a service account and shows each message on its device's screen, by
tag. A registration token says how it will misbehave: `lost-…` is shown, then answered 503, once; `gone-…` is unknown.
The first line on stdout says where, and with which key file; what it counted is at /ledger. Until its input closes.
"""

import asyncio
import base64
import json
import logging
import os
import secrets
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from httpunk.asyncio import AutoServerProtocol

from rig.provider.__main__ import certified

PROJECT = "demo"
RETRY_AFTER_SECONDS = "1"  # who is not told waits ten
DETAIL = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
Answer = tuple[int, dict[str, Any]]


class Service:
    """What the service knows. `screens`: what each device shows, by tag, and how often it came."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._granted: set[str] = set()
        self.screens: defaultdict[str, defaultdict[str, int]] = defaultdict(
            lambda: defaultdict(int)
        )
        self.counts = dict.fromkeys(
            ("requests", "tokens", "refused", "shown_then_503", "unknown_devices"), 0
        )

    def key_file(self, url: str) -> str:
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "demo",
            "private_key": pem.decode(),
            "client_email": "demo@demo.example",
            "token_uri": f"{url}/token",
        }
        return json.dumps(account)

    def answer(self, path: str, authorization: str, body: bytes) -> Answer:
        if path == "/ledger":
            return 200, self.ledger()
        if path == "/token":
            return self._grant(body)
        self.counts["requests"] += 1
        if authorization.removeprefix("Bearer ") not in self._granted:
            self.counts["refused"] += 1
            return 401, _fault(401, "UNAUTHENTICATED")
        return self._show(json.loads(body)["message"])

    def ledger(self) -> dict[str, int]:
        tags = [tag for screen in self.screens.values() for tag in screen.values()]
        return {
            **self.counts,
            "devices": len(self.screens),
            "replaced": sum(times - 1 for times in tags),
            "shown_twice": sum(len(screen) - 1 for screen in self.screens.values()),
        }

    def _grant(self, body: bytes) -> Answer:
        said, _, signature = parse_qs(body.decode())["assertion"][0].rpartition(".")
        try:
            self._key.public_key().verify(
                _unpacked(signature), said.encode(), padding.PKCS1v15(), SHA256()
            )
        except InvalidSignature:
            self.counts["refused"] += 1
            return 400, {"error": "invalid_grant"}
        token = secrets.token_urlsafe(16)
        self._granted.add(token)
        self.counts["tokens"] += 1
        return 200, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}

    def _show(self, message: Mapping[str, Any]) -> Answer:
        device = message["token"]
        if device.startswith("gone-"):
            self.counts["unknown_devices"] += 1
            return 404, _fault(404, "NOT_FOUND", "UNREGISTERED")
        screen = self.screens[device]
        screen[message["android"]["notification"]["tag"]] += 1
        if device.startswith("lost-") and sum(screen.values()) == 1:
            self.counts["shown_then_503"] += 1
            return 503, _fault(503, "UNAVAILABLE", "UNAVAILABLE")
        return 200, {"name": f"projects/{PROJECT}/messages/{secrets.token_hex(8)}"}


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _fault(code: int, status: str, fcm: str = "") -> dict[str, Any]:
    details = [{"@type": DETAIL, "errorCode": fcm}] if fcm else []
    return {"error": {"code": code, "status": status, "message": "", "details": details}}


def connection(service: Service) -> type[AutoServerProtocol]:
    class Connection(AutoServerProtocol):
        async def handle(self, request: Any) -> None:
            body = await request.read()
            authorization = (request.headers.get("authorization") or b"").decode()
            status, said = service.answer(request.path, authorization, body)
            headers = {"content-type": "application/json"}
            if status == 503:
                headers["retry-after"] = RETRY_AFTER_SECONDS
            await request.respond(status, headers=headers, body=json.dumps(said).encode())

    return Connection


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    service = Service()
    context = certified(folder / "push-ca.pem")
    context.set_alpn_protocols(["h2", "http/1.1"])
    server = await loop.create_server(
        connection(service), "127.0.0.1", 0, ssl=context, backlog=1024
    )
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    print(json.dumps({"url": url, "key_file": service.key_file(url)}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)  # connections and all: nobody waits for a goodbye


def main() -> None:
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it grumbles at each TLS goodbye
    asyncio.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
