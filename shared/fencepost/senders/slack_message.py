"""A Slack message made of a payload: what `chat.postMessage` and incoming webhooks both take.

Source: docs.slack.dev, *chat.postMessage* (text over 40,000 characters is cut, at most 100 attachments), *Formatting
message text* (&, < and > are escaped; `mrkdwn: false` shows the rest as it is).
"""

from collections.abc import Mapping
from typing import Any

from fencepost.core.outcome import Rejected
from fencepost.senders.vocabulary import laid_over, plain_text, raw_block

TEXT_CHARACTERS_MAX = 40_000
ATTACHMENTS_MAX = 100
BLOCKS_MAX = 50
SHOWN = ("text", "blocks", "attachments")
ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def message_of(payload: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Text is shown as it is written. The `raw` block is laid over it; its own `text` may hold markup."""
    raw = raw_block(payload, kind)
    message: dict[str, Any] = {}
    if text := plain_text(payload):
        message["text"] = text.translate(ESCAPED)
    if "text" not in raw:
        message["mrkdwn"] = False
    if image := payload.get("image"):
        title = payload.get("title") or image
        message["attachments"] = [{"fallback": title, "image_url": image}]
    return laid_over(message, raw)


def fault_of(message: Mapping[str, Any]) -> Rejected | None:
    """Why Slack would refuse it, or cut it, which is worse."""
    if not any(message.get(key) for key in SHOWN):
        return Rejected("nothing to show: no title, body, url, image or raw block")
    text = message.get("text", "")
    if isinstance(text, str) and len(text) > TEXT_CHARACTERS_MAX:
        return Rejected(
            f"text has {len(text)} characters, Slack cuts it after {TEXT_CHARACTERS_MAX}"
        )
    for key, limit in (("attachments", ATTACHMENTS_MAX), ("blocks", BLOCKS_MAX)):
        parts = message.get(key, [])
        if isinstance(parts, list | tuple) and len(parts) > limit:
            return Rejected(f"{len(parts)} {key}, Slack takes {limit}")
    return None
