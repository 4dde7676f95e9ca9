"""What an iPhone gets: the payload's vocabulary as Apple's dictionary `aps` and the app's own keys beside it. Pure.

Source: developer.apple.com, Generating a remote notification; Pushing background updates to your app.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fencepost.senders.vocabulary import laid_over, raw_block

KEY = "fencepost_key"  # beside `aps`, where nothing is shown
SHOWN = ("title", "body", "sound", "badge")
SAME_BUT_NAMED = {"sound": "sound", "thread": "thread-id", "category": "category"}


class ForeignAps(ValueError):
    """The app's own data holds the key that is Apple's."""


def shows(payload: Mapping[str, Any]) -> bool:
    """Whether anybody sees or hears it. What is not shown wakes the app."""
    return not payload.get("silent") and any(name in payload for name in SHOWN)


def content_of(payload: Mapping[str, Any], key: UUID, *, background: bool) -> dict[str, Any]:
    """The whole JSON: what we say, and an `apns` block in the payload's `raw` laid over it, object into object.
    Raises `ForeignAps`."""
    said = said_of(payload, key, background=background)
    return laid_over(said, raw_block(payload, "apns"))


def said_of(payload: Mapping[str, Any], key: UUID, *, background: bool) -> dict[str, Any]:
    """`data` lies beside `aps`, and so do `url` and `image` unless `data` has them too. Raises `ForeignAps`.

    On the screen Apple merges a repeat by its collapse id. What shows nothing has no such place: it carries the
    notification's key, by which the app can tell a repeat.
    """
    data = payload.get("data", {})
    if "aps" in data:
        raise ForeignAps
    own = {name: payload[name] for name in ("url", "image") if name in payload}
    telling = {} if shows(payload) else {KEY: str(key)}
    aps = {"content-available": 1} if background else _shown(payload)
    return {**own, **data, **telling, "aps": aps}


def _shown(payload: Mapping[str, Any]) -> dict[str, Any]:
    aps = {theirs: payload[ours] for ours, theirs in SAME_BUT_NAMED.items() if ours in payload}
    alert = {name: payload[name] for name in ("title", "body") if name in payload}
    if alert:
        aps["alert"] = alert
    if "badge" in payload:
        aps["badge"] = int(payload["badge"])
    if "image" in payload:
        aps["mutable-content"] = 1  # an extension of the app fetches the picture
    return aps
