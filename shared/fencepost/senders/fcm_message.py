"""What FCM gets: the payload's vocabulary as one message for Android, iPhones and browsers. Pure.

Source: firebase.google.com, REST Resource projects.messages (HTTP v1); Set Android message priority; Non-collapsible
and collapsible messages.
"""

import re
from collections.abc import Mapping
from typing import Any

from fencepost.core.notification import Claimed
from fencepost.senders.body import json_body
from fencepost.senders.collapse import collapse_id, collapse_of, topic_of
from fencepost.senders.vocabulary import laid_over, raw_block

KEY = "fencepost_key"  # in `data`, where nothing is shown
SHOWN = ("title", "body", "image")
APS = {"sound": "sound", "thread": "thread-id", "category": "category"}
TARGETS = ("token", "topic", "condition")
TOPIC = re.compile(r"[A-Za-z0-9._~%-]+", re.ASCII)
TOKEN = re.compile(r"[A-Za-z0-9_:.=-]+", re.ASCII)
CONDITION_MAX = 1000
HTTPS = "https://"


class NoTarget(ValueError):
    """The recipient is none. The message does not repeat it."""


def target_of(recipient: str) -> dict[str, str]:
    """A registration token, or `topic:NAME`, or `condition:'a' in topics && …`. Raises `NoTarget`."""
    kind, _, rest = recipient.partition(":")
    if kind == "topic":
        if not TOPIC.fullmatch(rest):
            raise NoTarget("recipient names no topic")
        return {"topic": rest}
    if kind == "condition":
        if not rest.strip() or len(rest) > CONDITION_MAX or not rest.isprintable():
            raise NoTarget("recipient holds no condition")
        return {"condition": rest}
    if not TOKEN.fullmatch(recipient):
        raise NoTarget("recipient is no registration token")
    return {"token": recipient}


def shows(payload: Mapping[str, Any]) -> bool:
    """Whether FCM shows it by itself. What is not shown is handed to the app."""
    return not payload.get("silent") and any(name in payload for name in SHOWN)


def content_of(claimed: Claimed) -> dict[str, Any]:
    """All of a message but its target and its lifetime: what we say, and an `fcm` block in the payload's `raw` laid
    over it, object into object. Raises `NoTarget` where that names one, and ValueError for data without JSON form."""
    return overlaid(said_of(claimed), raw_block(claimed.payload, "fcm"))


def overlaid(said: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `NoTarget`."""
    message = laid_over(said, block)
    if any(name in message for name in TARGETS):
        raise NoTarget("payload.raw.fcm names a target: that is the recipient's place")
    return {name: value for name, value in message.items() if value != {}}


def said_of(claimed: Claimed) -> dict[str, Any]:
    """Raises ValueError for data without JSON form.

    On the screen a repeat replaces the first: tag, collapse id and web tag are the payload's `collapse` or else the
    notification's key. What shows nothing carries the key in its data instead. `collapse_key` (what waits for a device
    that is offline) is only ever the payload's own: FCM keeps four of them a device, and a key for each notification
    would push others' out.
    """
    payload = claimed.payload
    said: dict[str, Any] = {
        "android": _android(claimed),
        "apns": _apns(claimed),
        "webpush": _webpush(claimed),
    }
    if shows(payload):
        said["notification"] = {name: payload[name] for name in SHOWN if name in payload}
    if data := _data(claimed):
        said["data"] = data
    return said


def lifetime(ttl: int, now: float) -> dict[str, Any]:
    """What is told anew at each attempt. Seconds; 0: now or never. Apple wants the instant."""
    expiration = str(int(now) + ttl) if ttl else "0"
    return {
        "android": {"ttl": f"{ttl}s"},
        "apns": {"headers": {"apns-expiration": expiration}},
        "webpush": {"headers": {"TTL": str(ttl)}},
    }


def counted_bytes(message: Mapping[str, Any]) -> int:
    """What FCM counts at least: keys and values of what is shown and of the data, in UTF-8."""
    counted = (message.get("notification"), message.get("data"))
    texts = (
        text
        for block in counted
        if isinstance(block, Mapping)
        for pair in block.items()
        for text in pair
    )
    return sum(len(str(text).encode()) for text in texts)


def _data(claimed: Claimed) -> dict[str, str]:
    """Values are strings: what is none goes as its JSON."""
    payload = claimed.payload
    url = {"url": payload["url"]} if "url" in payload else {}
    telling = {} if shows(payload) else {KEY: str(claimed.idempotency_key)}
    data = {**url, **payload.get("data", {}), **telling}
    return {
        name: value if isinstance(value, str) else json_body(value).decode()
        for name, value in data.items()
    }


def _android(claimed: Claimed) -> dict[str, Any]:
    payload = claimed.payload
    said: dict[str, Any] = {}
    if "collapse" in payload:
        said["collapse_key"] = payload["collapse"]
    if "urgency" in payload:
        said["priority"] = "HIGH" if payload["urgency"] == "high" else "NORMAL"
    if shows(payload):
        said["notification"] = {"tag": collapse_of(claimed), **_android_look(payload)}
    return said


def _android_look(payload: Mapping[str, Any]) -> dict[str, Any]:
    look: dict[str, Any] = {}
    if "sound" in payload:
        look["sound"] = payload["sound"]
    if "category" in payload:
        look["channel_id"] = payload["category"]
    if payload.get("badge"):
        look["notification_count"] = int(payload["badge"])
    if "icon" in payload and not _is_url(payload["icon"]):
        look["icon"] = payload["icon"]  # the name of one in the app
    return look


def _apns(claimed: Claimed) -> dict[str, Any]:
    """As Apple wants it: a background push of priority 10 would be refused."""
    payload = claimed.payload
    background = not shows(payload) and not _heard(payload)
    headers = {
        "apns-collapse-id": collapse_id(claimed),
        "apns-push-type": "background" if background else "alert",
        "apns-priority": "5" if background or payload.get("urgency") == "low" else "10",
    }
    if background:
        return {"headers": headers, "payload": {"aps": {"content-available": 1}}}
    aps = {theirs: payload[ours] for ours, theirs in APS.items() if ours in payload}
    if "badge" in payload:
        aps["badge"] = int(payload["badge"])
    if "image" not in payload:
        return {"headers": headers, "payload": {"aps": aps}}
    aps["mutable-content"] = 1  # an extension of the app fetches the picture
    picture = {"image": payload["image"]}
    return {"headers": headers, "payload": {"aps": aps}, "fcm_options": picture}


def _heard(payload: Mapping[str, Any]) -> bool:
    return not payload.get("silent") and ("sound" in payload or "badge" in payload)


def _webpush(claimed: Claimed) -> dict[str, Any]:
    payload = claimed.payload
    headers = {"Topic": topic_of(collapse_of(claimed))}
    if "urgency" in payload:
        headers["Urgency"] = payload["urgency"]
    if not shows(payload):
        return {"headers": headers}
    look = {"tag": collapse_of(claimed)}
    if _is_url(payload.get("icon")):
        look["icon"] = payload["icon"]
    said: dict[str, Any] = {"headers": headers, "notification": look}
    if _is_url(payload.get("url")):
        said["fcm_options"] = {"link": payload["url"]}  # FCM takes no other than https
    return said


def _is_url(text: object) -> bool:
    return isinstance(text, str) and text.startswith(HTTPS)
