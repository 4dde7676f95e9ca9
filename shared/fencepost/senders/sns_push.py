"""What SNS passes on to a push platform: the block for APNs or FCM, and SNS's own attributes for it. Pure.

SNS answers before the platform does, and what the platform refuses is lost silently: so what it would refuse is refused
here. Sources: SNS developer guide, *Publishing with platform-specific payloads*, *Using Firebase Cloud Messaging v1
payloads*, *Reserved message attributes for mobile push notifications*; Apple, *Generating a remote notification*;
Firebase, *REST v1 messages*.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.core.notification import Claimed
from fencepost.senders import apns_message, fcm_message
from fencepost.senders.collapse import collapse_id
from fencepost.senders.vocabulary import laid_over

APPLE = ("APNS", "APNS_VOIP", "MACOS")
PUSH_BYTES_MAX = 4_096
VOIP_BYTES_MAX = 5_120
RESERVED_BY_FCM = re.compile(r"(from|message_type)$|google\.|gcm\.", re.ASCII)
UNSHOWN = ("data", "url", "image")  # what an app is woken for


class NoMessage(ValueError):
    """There can be none: one line why, which quotes nothing."""


@dataclass(frozen=True, slots=True)
class Block:
    """`counted` is what the platform's limit is about."""

    content: Mapping[str, Any] = field(repr=False)
    counted: Mapping[str, Any] = field(repr=False)


def push_block(claimed: Claimed, platform: str, raw: Mapping[str, Any]) -> Block | None:
    """As our own senders for Apple and Google say it. None: the platform gets the plain text.

    `raw` has blocks by platform; APNS's is its sandbox's too. Raises `NoMessage`."""
    family = _family(platform)
    over = raw.get(platform, raw.get(family, {}))
    if family == "GCM":
        return _google(claimed, over)
    if family in APPLE:
        over = laid_over(_apple(claimed, background=_background(claimed, platform)), over)
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


def _apple(claimed: Claimed, *, background: bool) -> dict[str, Any]:
    if not _says_something(claimed.payload):
        return {}
    try:
        return apns_message.said_of(claimed.payload, claimed.idempotency_key, background=background)
    except apns_message.ForeignAps:
        raise NoMessage("payload.data: the key aps is Apple's") from None


def _google(claimed: Claimed, over: Mapping[str, Any]) -> Block | None:
    """FCM v1 without the token, which SNS adds. Counted as JSON, which is a little more than FCM counts."""
    said = fcm_message.said_of(claimed) if _says_something(claimed.payload) else {}
    try:
        message = fcm_message.overlaid(said, over)
    except fcm_message.NoTarget:
        raise NoMessage("raw.sns.GCM names a target: that is the recipient's place") from None
    data = message.get("data", {})
    if isinstance(data, Mapping) and any(map(RESERVED_BY_FCM.match, data)):
        raise NoMessage(
            "data has a key that FCM keeps for itself (from, message_type, google., gcm.)"
        )
    counted: dict[str, Any] = {
        key: message[key] for key in ("notification", "data") if key in message
    }
    return Block({"fcmV1Message": {"message": message}}, counted) if message else None


def _says_something(payload: Mapping[str, Any]) -> bool:
    """Whether there is anything to show, to hear or to wake an app for."""
    shown = apns_message.shows(payload) or payload.get("silent")
    return bool(shown or any(payload.get(key) for key in UNSHOWN))


def _background(claimed: Claimed, platform: str) -> bool:
    return _family(platform) != "APNS_VOIP" and not apns_message.shows(claimed.payload)


def _family(platform: str) -> str:
    return platform.removesuffix("_SANDBOX")
