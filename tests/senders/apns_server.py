"""Apple's end of APNs, as its pages describe it: it reads every header, checks the token's signature, keeps devices,
and takes one stream until it has seen a good token."""

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature

from tests.senders.peers import Asked, H2Peer, Peer
from tests.senders.tokens import EC_KEY, read_token

TOPIC, TEAM_ID, KEY_ID = "com.example.shop", "TEAM123456", "KEY1234567"
TOKEN_SECONDS_MAX = 3600
CLOCK_SECONDS = 60  # as much as a token may be ahead
STREAMS_MAX = 1000
PUSH_TYPES = ("alert", "background", "voip")


@dataclass
class Device:
    """What its owner sees, and what the app was woken with."""

    topic: str = TOPIC
    gone_at_ms: int | None = None
    screen: dict[str, Any] = field(default_factory=dict)  # by collapse id: a repeat replaces
    alerts: int = 0
    woken: list[Any] = field(default_factory=list)


class Refused(Exception):
    def __init__(self, status: int, reason: str, **more: Any) -> None:
        super().__init__(reason)
        self.status, self.body = status, {"reason": reason, **more}


class FakeApns:
    """`answers_lost`: so many are stored, and then the connection breaks instead of an answer."""

    def __init__(self, now: Callable[[], float], *devices: str, limit: int = 4096) -> None:
        self.now = now
        self.limit = limit
        self.devices = {device: Device() for device in devices}
        self.tokens: list[str] = []  # every distinct one, in order
        self.requests: list[Asked] = []
        self.answers_lost = 0

    async def __call__(self, peer: Peer) -> None:
        assert isinstance(peer, H2Peer), "APNs speaks HTTP/2 only"
        known = False
        while True:
            asked = await peer.request()
            self.requests.append(asked)
            try:
                self.authorized(asked)
                if not known:
                    await peer.allow(STREAMS_MAX)
                    known = True
                self.delivered(asked)
            except Refused as refused:
                body = json.dumps(refused.body).encode()
                await peer.answer(asked, refused.status, body, self.id_of(asked))
                continue
            if self.answers_lost:
                self.answers_lost -= 1
                peer.reset()
                return
            await peer.answer(asked, 200, b"", self.id_of(asked))

    def id_of(self, asked: Asked) -> tuple[tuple[str, str], ...]:
        return (("apns-id", asked.headers["apns-id"]),)

    def authorized(self, asked: Asked) -> None:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if scheme != "bearer" or not token:
            raise Refused(403, "MissingProviderToken")
        try:
            header, claims = read_token(token, EC_KEY.public_key())
        except (InvalidSignature, ValueError):
            raise Refused(403, "InvalidProviderToken") from None
        if (header["alg"], header["kid"], claims["iss"]) != ("ES256", KEY_ID, TEAM_ID):
            raise Refused(403, "InvalidProviderToken")
        age = self.now() - claims["iat"]
        if age < -CLOCK_SECONDS:
            raise Refused(403, "InvalidProviderToken")
        if age > TOKEN_SECONDS_MAX:
            raise Refused(403, "ExpiredProviderToken")
        if token not in self.tokens:
            self.tokens.append(token)

    def delivered(self, asked: Asked) -> None:
        headers = asked.headers
        self.well_formed(headers)
        if not asked.body:
            raise Refused(400, "PayloadEmpty")
        if len(asked.body) > self.limit:
            raise Refused(413, "PayloadTooLarge")
        device = self.device(headers)
        content = json.loads(asked.body)
        if headers["apns-push-type"] == "background":
            assert not {"alert", "sound", "badge"} & content["aps"].keys()
            assert content["aps"]["content-available"] == 1
            device.woken.append(content)
            return
        device.alerts += 1
        device.screen[headers.get("apns-collapse-id", str(device.alerts))] = content

    def well_formed(self, headers: dict[str, str]) -> None:
        if headers[":method"] != "POST":
            raise Refused(405, "MethodNotAllowed")
        if not re.fullmatch("/3/device/[0-9a-fA-F]+", headers[":path"]):
            raise Refused(404, "BadPath")
        if "," in headers["apns-topic"]:
            raise Refused(400, "DuplicateHeaders")
        if headers["apns-push-type"] not in PUSH_TYPES:
            raise Refused(400, "InvalidPushType")
        background = headers["apns-push-type"] == "background"
        if headers["apns-priority"] not in (("1", "5") if background else ("1", "5", "10")):
            raise Refused(400, "BadPriority")
        if len(headers.get("apns-collapse-id", "").encode()) > 64:
            raise Refused(400, "BadCollapseId")
        if not headers["apns-expiration"].isdigit():
            raise Refused(400, "BadExpirationDate")
        if str(uuid.UUID(headers["apns-id"])) != headers["apns-id"]:
            raise Refused(400, "BadMessageId")

    def device(self, headers: dict[str, str]) -> Device:
        device = self.devices.get(headers[":path"].rpartition("/")[2])
        if device is None:
            raise Refused(400, "BadDeviceToken")
        if device.topic != headers["apns-topic"]:
            raise Refused(400, "DeviceTokenNotForTopic")
        if device.gone_at_ms is not None:
            raise Refused(410, "Unregistered", timestamp=device.gone_at_ms)
        return device
