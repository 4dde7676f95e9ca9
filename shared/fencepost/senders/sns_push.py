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
from fencepost.senders.apns_message import ForeignAps, said_of, shows
from fencepost.senders.body import json_body
from fencepost.senders.collapse import collapse_id, collapse_of
from fencepost.senders.vocabulary import laid_over

APPLE = ("APNS", "APNS_VOIP", "MACOS")
PUSH_BYTES_MAX = 4_096
VOIP_BYTES_MAX = 5_120
UNSHOWN = ("data", "url", "image")  # what an app is woken for


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
        message = laid_over(fcm_message(claimed), over)
        return Block({"fcmV1Message": {"message": message}}, message) if message else None
    if family in APPLE:
        said = apple_payload(claimed, background=_background(claimed, platform))
        over = laid_over(said, over)
    return Block(over, over) if over else None


def push_attributes(claimed: Claimed, platform: str) -> dict[str, str]:
    """For Apple the headers of the request, which SNS makes of them; the names are the same for its sandbox."""
    if _family(platform) not in APPLE:
        return {}
    voip, background = _family(platform) == "APNS_VOIP", _background(claimed, platform)
    patient = background or claimed.payload.get("urgency") == "low"
    attributes = {
        "PUSH_TYPE": "voip" if voip else "background" if background else "alert",
        "PRIORITY": "5" if patient else "10",
    }
    if not voip:
        attributes["COLLAPSE_ID"] = collapse_id(claimed)
    return {f"AWS.SNS.MOBILE.APNS.{name}": value for name, value in attributes.items()}


def ttl_attribute(platform: str) -> str:
    """SNS takes what passed inside SNS off it, and hands on the rest."""
    return f"AWS.SNS.MOBILE.{'FCM' if platform == 'GCM' else platform}.TTL"


def bytes_max(platform: str) -> int:
    return VOIP_BYTES_MAX if _family(platform) == "APNS_VOIP" else PUSH_BYTES_MAX


def apple_payload(claimed: Claimed, *, background: bool) -> dict[str, Any]:
    """As our own sender for APNs makes it. Empty where there is nothing to show and nothing to wake for.

    Raises `NoMessage`."""
    payload = claimed.payload
    if not (shows(payload) or payload.get("silent") or any(payload.get(key) for key in UNSHOWN)):
        return {}
    try:
        return said_of(payload, claimed.idempotency_key, background=background)
    except ForeignAps:
        raise NoMessage("payload.data: the key aps is Apple's") from None


def _background(claimed: Claimed, platform: str) -> bool:
    return _family(platform) != "APNS_VOIP" and not shows(claimed.payload)


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
