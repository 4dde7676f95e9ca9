"""A mail for SES made of a payload: the body of `SendEmail`. Pure.

Source: SES API v2, *SendEmail*, and the service model that botocore ships. `Simple` content takes headers and any
charset, so no MIME is built here; whoever has a mail of their own brings it as `raw`.
"""

from collections.abc import Mapping
from email.utils import formataddr, parseaddr
from typing import Any

from fencepost.senders.mail_address import NoAddress, address_of
from fencepost.senders.ses_settings import SesSettings
from fencepost.senders.vocabulary import laid_over, raw_block

READ = ("FromEmailAddress", "Destination", "ReplyToAddresses", "Content")  # by whom it reaches


class NoMail(ValueError):
    """There can be none: one line why, which quotes nothing."""


def mail_of(payload: Mapping[str, Any], recipient: str, settings: SesSettings) -> dict[str, Any]:
    """All but the tags, which are of the attempt. The keys of the `raw` block go over ours, object by object.

    Raises `NoMail`.
    """
    raw = _checked(raw_block(payload, "ses"))
    try:
        to = address_of(recipient)
    except NoAddress as wrong:
        raise NoMail(f"recipient {wrong}") from None
    ours = {**_envelope(settings), "Destination": {"ToAddresses": [to]}}
    if raw.get("Content", {}).keys() - {"Simple"}:  # a mail of its own (Raw, Template) instead
        return {**ours, **raw}
    mail = laid_over({**ours, "Content": {"Simple": _content(payload, settings)}}, raw)
    if not mail["Content"]["Simple"]["Body"]:
        raise NoMail("nothing to read: neither body nor html nor a raw block with Content")
    return mail


def named_address(text: str) -> str:
    """`Name <address>` as a header: a name beyond ASCII becomes an encoded word (RFC 2047)."""
    name, address = parseaddr(text)
    return formataddr((name, address))


def _envelope(settings: SesSettings) -> dict[str, Any]:
    lists = {"ContactListName": settings.contact_list, "TopicName": settings.contact_topic}
    envelope = {
        "FromEmailAddress": named_address(settings.from_address),
        "FromEmailAddressIdentityArn": settings.from_identity_arn,
        "ReplyToAddresses": [named_address(one) for one in settings.reply_to],
        "ConfigurationSetName": settings.configuration_set,
        "ListManagementOptions": {key: value for key, value in lists.items() if value},
    }
    return {key: value for key, value in envelope.items() if value}


def _content(payload: Mapping[str, Any], settings: SesSettings) -> dict[str, Any]:
    parts = {"Text": payload.get("body"), "Html": payload.get("html")}
    content: dict[str, Any] = {
        "Subject": _text(" ".join(str(payload.get("title", "")).splitlines())),
        "Body": {part: _text(str(text)) for part, text in parts.items() if text},
    }
    if settings.headers:
        named = settings.headers.items()
        content["Headers"] = [{"Name": name, "Value": value} for name, value in named]
    return content


def _text(data: str) -> dict[str, str]:
    return {"Data": data, "Charset": "UTF-8"}


def _checked(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """As far as what is built on it needs it; the rest SES judges."""
    if "Destination" in raw:
        raise NoMail("raw.ses names a Destination: the notification's recipient is the only one")
    content = raw.get("Content", {})
    simple = content.get("Simple", {}) if isinstance(content, Mapping) else None
    body = simple.get("Body", {}) if isinstance(simple, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(raw.get("EmailTags", []), list):
        raise NoMail("raw.ses is no body of SendEmail: Content holds objects, EmailTags is a list")
    return raw
