"""What SNS passes on to a push platform: the block for APNs or FCM, and SNS's own attributes for it. Pure.

SNS answers before the platform does, and what the platform refuses is lost silently: so what it would refuse is refused
here. Sources: SNS developer guide, *Publishing with platform-specific payloads*, *Using Firebase Cloud Messaging v1
payloads*, *Reserved message attributes for mobile push notifications*; Apple, *Generating a remote notification*;
Firebase, *REST v1 messages*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.core.notification import Claimed
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.collapse import collapse_of
from fencepost.senders.merged import merged

APPLE = ("APNS", "APNS_VOIP", "MACOS")
PUSH_BYTES_MAX = 4_096
VOIP_BYTES_MAX = 5_120
LAST_OF_BASIC_PLANE = (
    "\uffff"  # an attribute's text may hold nothing beyond: "surrogate values are not supported"
)


class NoMessage(ValueError):
    """There can be none: one line why, which quotes nothing."""


@dataclass(frozen=True, slots=True)
class Block:
    """`counted` is what the platform's limit is about."""

    content: Mapping[str, Any] = field(repr=False)
    counted: Mapping[str, Any] = field(repr=False)


def push_block(claimed: Claimed, platform: str, raw: Mapping[str, Any]) -> Block | None:
    """None: the platform gets the plain text. `raw` has blocks by platform; APNS's is its sandbox's too."""
    family = _family(platform)
    over = raw.get(platform, raw.get(family, {}))
    if family == "GCM":
        message = merged(fcm_message(claimed), over)
        return Block({"fcmV1Message": {"message": message}}, message) if message else None
    content = merged(apple_payload(claimed.payload), over) if family in APPLE else over
    return Block(content, content) if content else None


def push_attributes(claimed: Claimed, platform: str) -> dict[str, str]:
    """For Apple the headers of the request, which SNS makes of them; the names are the same for its sandbox."""
    if _family(platform) not in APPLE:
        return {}
    voip, quiet = _family(platform) == "APNS_VOIP", _quiet(claimed.payload)
    patient = quiet or claimed.payload.get("urgency") == "low"
    attributes = {
        "PUSH_TYPE": "voip" if voip else "background" if quiet else "alert",
        "PRIORITY": "5" if patient else "10",
    }
    if not voip:
        attributes["COLLAPSE_ID"] = _in_basic_plane(collapse_of(claimed))
    return {f"AWS.SNS.MOBILE.APNS.{name}": value for name, value in attributes.items()}


def ttl_attribute(platform: str) -> str:
    """SNS takes what passed inside SNS off it, and hands on the rest."""
    return f"AWS.SNS.MOBILE.{'FCM' if platform == 'GCM' else platform}.TTL"


def bytes_max(platform: str) -> int:
    return VOIP_BYTES_MAX if _family(platform) == "APNS_VOIP" else PUSH_BYTES_MAX


def apple_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """`data`, `url` and `image` stand beside `aps`, where the app finds its own keys."""
    custom = {key: payload[key] for key in ("url", "image") if key in payload}
    content = {**custom, **payload.get("data", {})}
    if content or payload.get("silent") is True or not _quiet(payload):
        content["aps"] = {"content-available": 1} if _quiet(payload) else _aps(payload)
    return content


def _quiet(payload: Mapping[str, Any]) -> bool:
    """Whether it shows nothing. Apple wants to be told: `background`, with the priority that goes with it."""
    return payload.get("silent") is True or not any(
        payload.get(key) not in (None, "") for key in ("title", "body", "badge", "sound")
    )


def _aps(payload: Mapping[str, Any]) -> dict[str, Any]:
    alert = {key: payload[key] for key in ("title", "body") if payload.get(key)}
    known = {
        "alert": alert or None,
        "badge": _whole(payload.get("badge")),
        "sound": payload.get("sound"),
        "thread-id": payload.get("thread"),
        "category": payload.get("category"),
        "mutable-content": 1 if alert and "image" in payload else None,  # the app fetches it
    }
    return {key: value for key, value in known.items() if value is not None}


def fcm_message(claimed: Claimed) -> dict[str, Any]:
    """An FCM v1 message without its token, which SNS adds. Raises `NoMessage`."""
    payload = claimed.payload
    shown: dict[str, Any] = {}
    if payload.get("silent") is not True:
        shown = {key: payload[key] for key in ("title", "body", "image") if payload.get(key)}
    message: dict[str, Any] = {"notification": shown, "data": _fcm_data(payload)}
    message = {key: value for key, value in message.items() if value}
    if message and (android := _android(claimed, visible=bool(shown))):
        message["android"] = android
    return message


def _android(claimed: Claimed, *, visible: bool) -> dict[str, Any]:
    payload = claimed.payload
    look = {
        "tag": collapse_of(claimed),  # one with the same tag takes the place of what is shown
        "channel_id": payload.get("category"),
        "sound": payload.get("sound"),
        "icon": payload.get("icon"),
        "notification_count": _whole(payload.get("badge")),
    }
    known = {
        "priority": {"high": "HIGH", "low": "NORMAL"}.get(payload.get("urgency", "")),
        "collapse_key": payload.get("collapse"),  # not our own key: FCM keeps four of them a device
        "notification": {key: value for key, value in look.items() if value is not None},
    }
    if not visible:
        del known["notification"]
    return {key: value for key, value in known.items() if value}


def _fcm_data(payload: Mapping[str, Any]) -> dict[str, str]:
    """FCM's values are strings: what is none goes as JSON."""
    data = {**({"url": payload["url"]} if "url" in payload else {}), **payload.get("data", {})}
    for key in data:
        if key in ("from", "message_type") or key.startswith(("google.", "gcm.")):
            raise NoMessage(
                "data has a key that FCM keeps for itself (from, message_type, google., gcm.)"
            )
    return {
        key: value if isinstance(value, str) else json_body(value).decode()
        for key, value in data.items()
    }


def _family(platform: str) -> str:
    return platform.removesuffix("_SANDBOX")


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _in_basic_plane(text: str) -> str:
    return text if max(text) <= LAST_OF_BASIC_PLANE else digest_of(text.encode()).hex()
