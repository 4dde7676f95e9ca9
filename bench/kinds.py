"""A working channel of each kind, against a server that answers as its provider does (bench/kinds_provider.py;
of mail: bench/mail_provider.py)."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bench.server import SECRET

Settings = Callable[[str], dict[str, Any]]  # by the server's URL


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """`protocol` is what the provider itself speaks."""

    protocol: str
    settings: Settings
    recipient: Callable[[str], str]
    secret: Callable[[str], str] = field(repr=False)


def examples() -> dict[str, Example]:
    """Keys are made for this one call."""
    p256 = ec.generate_private_key(ec.SECP256R1())
    return {
        "webhook": Example(
            protocol="h2",
            settings=lambda url: {"allow_private_networks": True},
            recipient=lambda url: f"{url}/hook",
            secret=lambda url: SECRET,
        ),
        "fcm": Example(
            protocol="h2", settings=_endpoint, recipient=_always("a-token"), secret=_key_file
        ),
        "apns": Example(
            protocol="h2",
            settings=lambda url: {
                "topic": "com.example.shop",
                "team_id": "TEAM123456",
                "key_id": "KEY1234567",
                "endpoint": url,
            },
            recipient=_always("ab12" * 16),
            secret=_always(_pem(p256)),
        ),
        "webpush": Example(
            protocol="h2",
            settings=lambda url: {
                "subject": "mailto:push@shop.example",
                "allow_private_networks": True,
            },
            recipient=lambda url: _subscription(f"{url}/push/1", p256),
            secret=_always(_packed(p256.private_numbers().private_value.to_bytes(32, "big"))),
        ),
        "expo": Example(
            protocol="h2",
            settings=_endpoint,
            recipient=_always("ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"),
            secret=_always("expo"),
        ),
        "slack": Example(
            protocol="http/1.1",
            settings=lambda url: {"endpoint": f"{url}/api"},
            recipient=_always("C0123ABC"),
            secret=_always("xoxb-1"),
        ),
        "slack_webhook": Example(
            protocol="http/1.1",
            settings=lambda url: {},
            recipient=_always("ops"),
            secret=lambda url: f"{url}/services/T0/B0/x",
        ),
        "twilio": Example(
            protocol="http/1.1",
            settings=lambda url: {
                "account_sid": "AC" + "0" * 32,
                "from": "+14155550123",
                "endpoint": url,
            },
            recipient=_always("+14155550100"),
            secret=_always(f"AC{'0' * 32}:token"),
        ),
        "telegram": Example(
            protocol="http/1.1",
            settings=_endpoint,
            recipient=_always("-100200"),
            secret=_always("123456:AAbench_-x"),
        ),
        "smtp": Example(
            protocol="smtp",
            settings=_mail_server,
            recipient=_always("ann@mail.example"),
            secret=_always(""),
        ),
    }


def _endpoint(url: str) -> dict[str, Any]:
    return {"endpoint": url}


def _mail_server(url: str) -> dict[str, Any]:
    server = urlsplit(url)
    return {"host": server.hostname, "port": server.port, "from": "Shop <orders@shop.example>"}


def _always(text: str) -> Callable[[str], str]:
    return lambda url: text


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _key_file(url: str) -> str:
    account = {
        "type": "service_account",
        "project_id": "shop",
        "private_key_id": "bench",
        "private_key": _pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        "client_email": "push@shop.example",
        "token_uri": f"{url}/token",
    }
    return json.dumps(account)


def _subscription(url: str, key: ec.EllipticCurvePrivateKey) -> str:
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return json.dumps(
        {"endpoint": url, "keys": {"p256dh": _packed(point), "auth": _packed(bytes(16))}}
    )
