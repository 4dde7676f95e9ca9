"""Google's end of FCM, as its pages describe it: a token service that checks the signed word of a service account, and
the HTTP v1 API that reads every field. Devices show what they are sent, by tag."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature

from tests.senders.peers import Asked, Peer
from tests.senders.stage import HOST
from tests.senders.tokens import RSA_KEY, RSA_PEM, read_token

PROJECT = "shop-4711"
EMAIL = "push@shop-4711.iam.gserviceaccount.com"
KEY_ID = "0123456789abcdef"
TOKEN_URI = f"https://{HOST}/token"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
TOKEN_SECONDS = 3599
CLOCK_SECONDS = 60
ACCOUNT: dict[str, Any] = {
    "type": "service_account",
    "project_id": PROJECT,
    "private_key_id": KEY_ID,
    "private_key": RSA_PEM,
    "client_email": EMAIL,
    "client_id": "1",
    "token_uri": TOKEN_URI,
    "universe_domain": "googleapis.com",
}
FIELDS = {"name", "data", "notification", "android", "webpush", "apns", "fcm_options"}
TARGETS = {"token", "topic", "condition"}
DETAIL = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
DURATION = re.compile(r"\d+(\.\d{1,9})?s")


@dataclass
class Device:
    """What its owner sees (by tag: a repeat replaces), and what its app was handed."""

    screen: dict[str, Any] = field(default_factory=dict)
    shown: int = 0
    handed: list[Any] = field(default_factory=list)


def fault(code: int, status: str, message: str = "", *, fcm: str = "", **more: Any) -> bytes:
    """An error as HTTP v1 writes it."""
    details = [{"@type": DETAIL, "errorCode": fcm}] if fcm else []
    details += [{"@type": kind, **content} for kind, content in more.get("details", {}).items()]
    error = {"code": code, "message": message, "status": status}
    return json.dumps({"error": {**error, **({"details": details} if details else {})}}).encode()


class Refused(Exception):
    def __init__(self, code: int, body: bytes) -> None:
        super().__init__(code)
        self.code, self.body = code, body


def invalid(place: str, description: str) -> Refused:
    violation = {"fieldViolations": [{"field": place, "description": description}]}
    details = {BAD_REQUEST: violation}
    return Refused(
        400, fault(400, "INVALID_ARGUMENT", description, fcm="INVALID_ARGUMENT", details=details)
    )


class FakeFcm:
    """`stored_then`: for so many messages what happens instead of an answer once they are stored."""

    def __init__(self, now: Callable[[], float], *devices: str) -> None:
        self.now = now
        self.devices = {device: Device() for device in devices}
        self.topics: list[tuple[str, str]] = []
        self.granted: dict[str, float] = {}  # access tokens and their ends
        self.asked_for_tokens = 0
        self.requests: list[Asked] = []
        self.stored_then: list[str | int] = []
        self.token_answers: list[tuple[int, bytes]] = []  # instead of a token, as long as there are

    async def __call__(self, peer: Peer) -> None:
        while True:
            asked = await peer.request()
            try:
                wanted = self.token if asked.headers[":path"] == "/token" else self.message
                body = wanted(asked)
            except Refused as refused:
                await peer.answer(asked, refused.code, refused.body)
                continue
            then = self.stored_then.pop(0) if self.stored_then and body[:8] == b'{"name":' else None
            if then == "reset":
                peer.reset()
                return
            if isinstance(then, int):
                await peer.answer(asked, then, fault(then, "UNAVAILABLE", fcm="UNAVAILABLE"))
            else:
                await peer.answer(asked, 200, body)

    # --- oauth2.googleapis.com/token

    def token(self, asked: Asked) -> bytes:
        self.asked_for_tokens += 1
        if self.token_answers:
            raise Refused(*self.token_answers.pop(0))
        form = parse_qs(asked.body.decode())
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        if form["grant_type"] != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            raise Refused(400, b'{"error":"unsupported_grant_type"}')
        try:
            header, claims = read_token(form["assertion"][0], RSA_KEY.public_key())
        except InvalidSignature:
            raise Refused(
                400, b'{"error":"invalid_grant","error_description":"Invalid JWT Signature."}'
            ) from None
        assert header == {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        assert (claims["iss"], claims["aud"], claims["scope"]) == (EMAIL, TOKEN_URI, SCOPE)
        life = claims["exp"] - claims["iat"]
        timely = abs(self.now() - claims["iat"]) <= CLOCK_SECONDS
        if not timely or not 0 < life <= 3600:
            raise Refused(400, b'{"error":"invalid_grant","error_description":"Invalid JWT"}')
        token = f"ya29.{self.asked_for_tokens}"
        self.granted[token] = self.now() + TOKEN_SECONDS
        answer = {"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}
        return json.dumps(answer).encode()

    # --- fcm.googleapis.com/v1/projects/…/messages:send

    def message(self, asked: Asked) -> bytes:
        self.requests.append(asked)
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or self.now() >= self.granted.get(token, 0.0):
            raise Refused(401, fault(401, "UNAUTHENTICATED", "Request had invalid credentials."))
        if asked.headers[":path"] != f"/v1/projects/{PROJECT}/messages:send":
            raise Refused(404, fault(404, "NOT_FOUND", "Requested entity was not found."))
        said = json.loads(asked.body)
        assert set(said) <= {"message", "validate_only"}
        message = said["message"]
        self.well_formed(message)
        self.stored(message)
        return json.dumps({"name": f"projects/{PROJECT}/messages/0:{len(self.requests)}"}).encode()

    def well_formed(self, message: dict[str, Any]) -> None:
        if unknown := set(message) - FIELDS - TARGETS:
            raise invalid("message", f"Unknown name {unknown}")
        if len(TARGETS & set(message)) != 1:
            raise invalid("message", "Recipient of the message is not set.")
        data, notification = message.get("data", {}), message.get("notification", {})
        for name, value in data.items():
            if not isinstance(value, str):
                raise invalid("message.data[0].value", f"Invalid value (TYPE_STRING), {value}")
            if name == "from" or name.startswith(("google", "gcm")):
                raise invalid("message.data", f"Invalid data payload key: {name}")
        size = sum(
            len(text.encode())
            for block in (data, notification)
            for pair in block.items()
            for text in pair
        )
        if size > (4096 if "token" in message else 2048):
            raise Refused(
                400, fault(400, "INVALID_ARGUMENT", "Request contains an invalid argument.")
            )
        self.platforms(message)

    def platforms(self, message: dict[str, Any]) -> None:
        android, apns, web = (message.get(name, {}) for name in ("android", "apns", "webpush"))
        if not DURATION.fullmatch(android["ttl"]) or float(android["ttl"][:-1]) > 2_419_200:
            raise invalid("message.android.ttl", "Invalid TTL")
        if android.get("priority", "HIGH") not in ("HIGH", "NORMAL"):
            raise invalid("message.android.priority", "Invalid value")
        strings = {**apns["headers"], **web["headers"]}
        if not all(isinstance(value, str) for value in strings.values()):
            raise invalid("message.apns.headers", "Invalid value")
        assert len(apns["headers"]["apns-collapse-id"].encode()) <= 64
        assert len(web["headers"].get("Topic", "")) <= 32
        link = web.get("fcm_options", {}).get("link", "https://")
        if not link.startswith("https://"):
            raise invalid("message.webpush.fcm_options.link", "Invalid link")

    def stored(self, message: dict[str, Any]) -> None:
        if "token" not in message:
            kind = "topic" if "topic" in message else "condition"
            self.topics.append((kind, message[kind]))
            return
        device = self.devices.get(message["token"])
        if device is None:
            raise Refused(
                404, fault(404, "NOT_FOUND", "Requested entity was not found.", fcm="UNREGISTERED")
            )
        if "notification" not in message:
            device.handed.append(message.get("data", {}))
            return
        device.shown += 1
        tag = message.get("android", {}).get("notification", {}).get("tag", str(device.shown))
        device.screen[tag] = message["notification"]
