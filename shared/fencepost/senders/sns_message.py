"""What SNS is asked to publish: to whom, what, and with which attributes. Pure.

Sources: SNS API, *Publish*; SNS developer guide, *Amazon SNS message attributes* (reserved ones), *Using the Amazon SNS
time to live message attribute*, *Publishing SMS messages to a mobile phone*.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.core.notification import Claimed
from fencepost.senders.body import json_body, too_large
from fencepost.senders.phone import E164
from fencepost.senders.sns_push import (
    NoMessage,
    bytes_max,
    push_attributes,
    push_block,
    ttl_attribute,
)
from fencepost.senders.sns_settings import SnsSettings
from fencepost.senders.vocabulary import plain_text, raw_block

ENDPOINT = re.compile(
    r"arn:aws[a-z-]*:sns:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12})"
    r":endpoint/(?P<platform>[A-Z_]+)/[A-Za-z0-9._-]+/[A-Za-z0-9-]+",
    re.ASCII,
)
MESSAGE_BYTES_MAX = 262_144  # the message and its attributes
# The guide says bytes and the API reference characters: here what is beyond both, the rest SNS judges.
SMS_CHARACTERS_MAX = 1_600
BESIDES_PLATFORMS = frozenset({"default", "attributes"})


@dataclass(frozen=True, slots=True)
class Publication:
    """`fields` and `attributes` are what is read. The time to live is of the attempt: here its attribute's name."""

    fields: Mapping[str, str] = field(repr=False)
    attributes: Mapping[str, str] = field(repr=False)
    ttl_attribute: str | None = None


def publication_of(claimed: Claimed, settings: SnsSettings, region: str) -> Publication:
    """Raises `NoMessage`, or ValueError for a payload without JSON form."""
    raw = _checked(raw_block(claimed.payload, "sns"))
    if E164.fullmatch(claimed.recipient):
        return _sized(_sms(claimed, raw, settings))
    found = ENDPOINT.fullmatch(claimed.recipient)
    if found is None:
        raise NoMessage(
            "recipient is neither a phone number (+4915112345678) nor the ARN of an app's endpoint"
        )
    if found["region"] != region:
        raise NoMessage("recipient is an endpoint of another region than the channel's")
    if settings.account_id not in (None, found["account"]):
        raise NoMessage("recipient is an endpoint of another account than the channel's")
    return _sized(_push(claimed, raw, found["platform"]))


def _sms(claimed: Claimed, raw: Mapping[str, Any], settings: SnsSettings) -> Publication:
    text = raw.get("default") or plain_text(claimed.payload)
    if not text:
        raise NoMessage("nothing to say: no title, body, url or raw.sns.default")
    if len(text) > SMS_CHARACTERS_MAX:
        raise NoMessage(f"text has {len(text)} characters, SNS takes {SMS_CHARACTERS_MAX}")
    fields = {"PhoneNumber": claimed.recipient, "Message": text}
    return Publication(fields, {**settings.sms_attributes, **raw.get("attributes", {})})


def _push(claimed: Claimed, raw: Mapping[str, Any], platform: str) -> Publication:
    said = {"default": raw.get("default") or plain_text(claimed.payload)}
    block = push_block(claimed, platform, raw)
    if block is not None:
        encoded = json_body(block.content)
        size = len(json_body(block.counted))
        if refusal := too_large(size, bytes_max(platform), f"the message for {platform}"):
            raise NoMessage(refusal.reason)
        said[platform] = encoded.decode()
    elif not said["default"]:
        raise NoMessage(f"nothing to show: no title, body, url or raw.sns block for {platform}")
    fields = {
        "TargetArn": claimed.recipient,
        "Message": json_body(said).decode(),
        "MessageStructure": "json",
    }
    attributes = {**push_attributes(claimed, platform), **raw.get("attributes", {})}
    ttl = ttl_attribute(platform)
    return Publication(fields, attributes, None if ttl in attributes else ttl)


def _sized(publication: Publication) -> Publication:
    parts = (
        publication.fields["Message"],
        *publication.attributes,
        *publication.attributes.values(),
    )
    if refusal := too_large(
        sum(len(part.encode()) for part in parts), MESSAGE_BYTES_MAX, "the message"
    ):
        raise NoMessage(refusal.reason)
    return publication


def _checked(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """As far as what is built on it needs it; the rest SNS and the platforms judge."""
    attributes = raw.get("attributes", {})
    texts = [raw.get("default", "")]
    texts += attributes.values() if isinstance(attributes, Mapping) else [None]
    blocks = [raw[key] for key in raw.keys() - BESIDES_PLATFORMS]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(one, Mapping) for one in blocks)
    ):
        raise NoMessage(
            "raw.sns: default is a string, attributes are strings by name, platforms are objects"
        )
    return raw
