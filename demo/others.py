"""The demo's providers beside the webhooks': a push service that speaks FCM over h2, SES as moto has it, and a chat."""

import contextlib
import json
import logging
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.chat import LOST, TOKEN, Chat, chat_service
from rig.ground import ROOT, leashed

FROM = "shop@demo.example"
REGION = "eu-central-1"
KEYS = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo",
    "AWS_DEFAULT_REGION": REGION,
}
TIMEOUT_SECONDS = 8  # of the function: whatever was sent stands there by then, also what a frozen run sends at last
PUSHES, MAILS, CHATS = 400, 150, 60
# Apart: a provider that fails again and again pauses its channel.
LOST_EVERY, GONE_EVERY, LOST_CHAT_EVERY = 20, 100, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """All of them. `environment`: what the functions need to reach and to trust them."""

    push_url: str
    mail_url: str
    chat: Chat
    authority_file: Path
    key_file: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DEMO_FCM_ACCOUNT": self.key_file,
            "SSL_CERT_FILE": str(self.authority_file),
            "DEMO_CHAT_TOKEN": TOKEN,
            **KEYS,
        }

    def channels(self) -> str:
        """Their tables for `fencepost channel apply`; where they listen is known only now."""
        policy = (
            "policy = { attempts_max = 4, backoff_base_seconds = 0.5, backoff_cap_seconds = 2 }"
        )
        return f"""
[channel.push]                # a repeat replaces the first on the screen: send again when in doubt
sender = "fcm"
secret = "env:DEMO_FCM_ACCOUNT"
on_uncertain = "resend"
slots = 20
settings = {{ endpoint = "{self.push_url}" }}
{policy}

[channel.mail]                # nothing against a duplicate: when in doubt, hold
sender = "ses"
on_uncertain = "hold"
slots = 10
settings = {{ endpoint = "{self.mail_url}", region = "{REGION}", from_address = "{FROM}" }}
{policy}

[channel.chat]                # it can be asked: when in doubt, look whether it stands there
sender = "slack"
secret = "env:DEMO_CHAT_TOKEN"
on_uncertain = "reconcile"
slots = 10
settings = {{ endpoint = "{self.chat.url}", settled_after_seconds = {TIMEOUT_SECONDS} }}
{policy}
"""

    def pushes(self) -> dict[str, int]:
        """What the push service counted."""
        trust = ssl.create_default_context(cafile=str(self.authority_file))
        with urllib.request.urlopen(f"{self.push_url}/ledger", timeout=20, context=trust) as answer:
            said: dict[str, int] = json.loads(answer.read())
        return said

    def mails(self) -> int:
        """How many mails SES took."""
        from moto.ses.models import ses_backends

        return sum(len(regions[REGION].sent_messages) for regions in ses_backends.values())


def lines() -> Iterator[Mapping[str, Any]]:
    """Lines for `fencepost enqueue`: a device or an address of its own for each."""
    for number in range(PUSHES):
        yield {
            "channel": "push",
            "recipient": f"{_device(number)}-{number:04d}",
            "payload": {"title": "Ihre Bestellung ist unterwegs", "body": f"#{number}"},
            "dedupe_key": f"push-{number:04d}",
        }
    for number in range(MAILS):
        yield {
            "channel": "mail",
            "recipient": f"customer-{number:04d}@demo.example",
            "payload": {"title": "Your receipt", "body": f"Order {number}. Thank you!"},
            "dedupe_key": f"mail-{number:04d}",
        }
    for number in range(CHATS):
        fate = LOST if number % LOST_CHAT_EVERY == 0 else "ok"
        yield {
            "channel": "chat",
            "recipient": f"C0ROOM{number % 6}",
            "payload": {"body": f"{fate}: order {number} was packed"},
            "dedupe_key": f"chat-{number:04d}",
        }


def _device(number: int) -> str:
    """How it will misbehave (rig/push.py)."""
    if number % LOST_EVERY == 0:
        return "lost"
    return "gone" if number % GONE_EVERY == 1 else "ok"


@contextlib.contextmanager
def others(folder: Path) -> Iterator[Others]:
    """All started; they end with the block, or with us."""
    with contextlib.ExitStack() as stack:
        told = stack.enter_context(_push_service(folder))
        yield Others(
            push_url=told["url"],
            key_file=told["key_file"],
            authority_file=folder / "push-ca.pem",
            mail_url=stack.enter_context(_mail_service()),
            chat=stack.enter_context(chat_service()),
        )


@contextlib.contextmanager
def _push_service(folder: Path) -> Iterator[Mapping[str, str]]:
    command = [sys.executable, "-m", "rig.push", str(folder)]
    started = subprocess.Popen(
        leashed(command, signal.SIGTERM, parent=str(os.getpid())),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with started:
        assert started.stdout is not None
        line = started.stdout.readline()
        if not line:
            raise RuntimeError(f"the push service did not start: {started.wait()}")
        yield json.loads(line)
        assert started.stdin is not None
        started.stdin.close()


@contextlib.contextmanager
def _mail_service() -> Iterator[str]:
    """moto's SES on a free port, with a verified sender."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        _client(url).create_email_identity(EmailIdentity=FROM)
        yield url
    finally:
        server.stop()


def _client(url: str) -> Any:
    import boto3

    return boto3.client(
        "sesv2",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
