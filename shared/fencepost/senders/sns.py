"""AWS SNS: one `Publish` a notification, to an app's endpoint (mobile push) or a phone number (SMS).

`MessageDeduplicationId` is for FIFO topics alone, which reach neither phones nor apps: SNS drops no repeat, and what
became of one it tells CloudWatch under an id that a lost answer would have told. A repeat to an app replaces the first
on its screen (collapse id of APNs, tag of FCM); a repeated SMS is a second SMS, and costs.
"""

from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import urlencode

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Outcome,
    Rejected,
    Throttled,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.answer import accepted
from fencepost.senders.aws.fault import (
    Fault,
    fault_of,
    message_id,
    not_answered,
    shared_meaning,
    shown,
    wait_seconds,
)
from fencepost.senders.aws.service import AwsService, aws_service, place_of
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.kind import SenderKind
from fencepost.senders.sns_message import Publication, publication_of
from fencepost.senders.sns_push import NoMessage
from fencepost.senders.sns_settings import SnsSettings, data_type_of
from fencepost.senders.transport import Transport
from fencepost.senders.ttl import ttl_of

FORM = "application/x-www-form-urlencoded; charset=utf-8"
ACTION = {"Action": "Publish", "Version": "2010-03-31"}


class Sns:
    """The sender."""

    facility = Facility()

    def __init__(self, service: AwsService, settings: SnsSettings) -> None:
        self._service = service
        self._settings = settings

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            made = publication_of(claimed, self._settings, self._service.place.region)
        except NoMessage as wrong:
            return Rejected(str(wrong))
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        read = json_body({"fields": made.fields, "attributes": made.attributes})
        return Prepared(digest_of(read), made)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        made = cast("Publication", prepared.request)
        attributes = {**made.attributes, **ttl_left(claimed, made)}
        form = {**ACTION, **made.fields, **dict(form_of(attributes))}
        return await self._service.post(
            "/", FORM, urlencode(form).encode(), timeout_seconds=timeout_seconds
        )

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None


def facility_of(settings: SnsSettings) -> Facility:
    """Nothing that holds for all its recipients: an SMS is not replaced by its repeat."""
    return Sns.facility


def sns(channel: Channel, secret: str | None, transport: Transport) -> Sns:
    """The constructor of the kind `sns`. Raises ValueError."""
    settings = msgspec.convert(dict(channel.settings), SnsSettings)
    place = place_of("sns", "sns", region=settings.region, url=settings.endpoint)
    return Sns(aws_service(transport, secret, place), settings)


def ttl_left(claimed: Claimed, made: Publication) -> dict[str, str]:
    """What is left of the expiry; without one SNS's own four weeks."""
    if made.ttl_attribute is None or claimed.expires_in_seconds is None:
        return {}
    return {made.ttl_attribute: str(ttl_of(claimed.expires_in_seconds))}


def form_of(attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Message attributes as the query protocol numbers them."""
    for number, name in enumerate(sorted(attributes), 1):
        entry = f"MessageAttributes.entry.{number}"
        yield f"{entry}.Name", name
        yield f"{entry}.Value.DataType", data_type_of(name)
        yield f"{entry}.Value.StringValue", attributes[name]


def meaning_of(reply: Reply) -> Outcome:
    """The table of SNS API, *Publish* (errors) and *Common Error Types*. Pure.

    An endpoint that is gone is told in three ways: EndpointDisabled (SNS disables it when Apple or Google refuse its
    token, also for one of the other environment), NotFound, and InvalidParameter with a text (getmoto/moto#2333); the
    last two are also said of another account's. An invalid number comes as InvalidParameter too, and so does every
    number in a region without SMS (aws/aws-sdk-js#1217). Numbers that have opted out are accepted and dropped: only
    CloudWatch is told (cds-snc/notification-api#2207).
    """
    if (outcome := not_answered(reply)) is not None:
        return outcome
    if 200 <= (reply.status or 0) < 300:
        return accepted(reply, message_id(reply), "SNS")
    fault = fault_of(reply)
    if fault.code in ("EndpointDisabled", "NotFound") or _says_gone(fault):
        return Unregistered(shown(fault, reply), guarded=True)
    match fault.code:
        case "PlatformApplicationDisabled":
            return CredentialFailure(shown(fault, reply))
        case "KMSThrottling":
            return Throttled(shown(fault, reply), wait_seconds(reply))
        case (
            "KMSAccessDenied"
            | "KMSDisabled"
            | "KMSInvalidState"
            | "KMSNotFound"
            | "KMSOptInRequired"
        ):
            return CredentialFailure(shown(fault, reply))
    return shared_meaning(fault, reply)


def _says_gone(fault: Fault) -> bool:
    return fault.code == "InvalidParameter" and (
        "No endpoint found" in fault.text or "is not valid to publish to" in fault.text
    )


KIND = SenderKind(build=sns, settings=SnsSettings, facility=facility_of)
