"""Twilio as the caller of a function URL: the event Lambda makes of its call, signed as Twilio signs."""

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from fencepost.core.notification import Claimed
from fencepost.senders.twilio_callback import callback_url
from fencepost.senders.twilio_signature import signature_of

ACCOUNT = "AC" + "0" * 32
TOKEN = "0123456789abcdef0123456789abcdef"
SECRET = f"{ACCOUNT}:{TOKEN}"
BASE = "https://abcdefghij.lambda-url.eu-central-1.on.aws"
SETTINGS = {"account_sid": ACCOUNT, "from": "+14155550123", "status_callback": BASE}
SID = "SM" + "1" * 32


def form_of(status: str, **more: str) -> dict[str, str]:
    """As the page *Track outbound message status* shows it."""
    return {
        "AccountSid": ACCOUNT,
        "ApiVersion": "2010-04-01",
        "From": "+14155550123",
        "MessageSid": SID,
        "MessageStatus": status,
        "SmsSid": SID,
        "SmsStatus": status,
        "To": "+14155550100",
        **more,
    }


def call(
    row: Claimed,
    form: Mapping[str, str],
    *,
    channel: str = "web",
    token: str = TOKEN,
    base: str = BASE,
    in_base64: bool = True,
) -> dict[str, Any]:
    """Lambda shows a form in base64; a local runtime does not."""
    url = callback_url(base, channel, row).partition("#")[0]
    body = urlencode(form)
    parts = urlsplit(url)
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.path,
        "rawQueryString": parts.query,
        "headers": {
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "host": parts.netloc,
            "user-agent": "TwilioProxy/1.1",
            "x-twilio-signature": signature_of(token, url, form.items()),
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": parts.netloc.partition(".")[0],
            "domainName": parts.netloc,
            "http": {"method": "POST", "path": parts.path, "protocol": "HTTP/1.1"},
            "requestId": "e1506fd5-9e7b-434f-bd42-4f8fa224b599",
            "routeKey": "$default",
            "stage": "$default",
        },
        "body": base64.b64encode(body.encode()).decode() if in_base64 else body,
        "isBase64Encoded": in_base64,
    }
