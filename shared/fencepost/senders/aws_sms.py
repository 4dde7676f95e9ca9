"""AWS End User Messaging: one `SendTextMessage` a notification, to one phone number.

It has no key against duplicates and cannot be asked. What it offers are events: each message carries a context that
names notification, fence and attempt, and the events of its configuration set repeat it. Its predecessor Pinpoint has
ended.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from fencepost.core.channel import Channel, Facility
from fencepost.core.notification import Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Outcome,
    Rejected,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.answer import accepted, code_of, read_object
from fencepost.senders.aws.fault import (
    fault_of,
    message_id,
    not_answered,
    shared_meaning,
    shown,
)
from fencepost.senders.aws.service import AwsService, aws_service, place_of
from fencepost.senders.aws.tags import tags_of
from fencepost.senders.aws_sms_settings import AwsSmsSettings
from fencepost.senders.body import digest_of, json_body
from fencepost.senders.kind import SenderKind
from fencepost.senders.phone import E164
from fencepost.senders.transport import Transport
from fencepost.senders.ttl import ttl_of
from fencepost.senders.vocabulary import laid_over, plain_text, raw_block

JSON = "application/x-amz-json-1.0"
TARGET = (("x-amz-target", "PinpointSMSVoiceV2.SendTextMessage"),)
CHARACTERS_MAX = 1_600
TTL_SECONDS_MIN, TTL_SECONDS_MAX = 5, 259_200
CONTEXT_MAX = 5
READ = ("DestinationPhoneNumber", "OriginationIdentity", "MessageBody")
NOT_IN_RAW = ("DestinationPhoneNumber", "DryRun", "TimeToLive")


class NoText(ValueError):
    """Nothing this kind could send: one line that repeats nothing of the payload."""


class AwsSms:
    """The sender."""

    def __init__(self, service: AwsService, settings: AwsSmsSettings) -> None:
        self._service = service
        self._settings = settings
        self.facility = facility_of(settings)

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            message = message_of(claimed, self._settings)
            read = json_body({key: message[key] for key in READ if key in message})
        except NoText as wrong:
            return Rejected(str(wrong))
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        return Prepared(digest_of(read), message)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        message = cast("Mapping[str, Any]", prepared.request)
        context = {**message.get("Context", {}), **tags_of(claimed)}
        body = json_body({**message, "Context": context, **ttl_left(claimed)})
        return await self._service.post(
            "/", JSON, body, headers=TARGET, timeout_seconds=timeout_seconds
        )

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None


def facility_of(settings: AwsSmsSettings) -> Facility:
    """Events tell by themselves, where a configuration set sends them on."""
    told = settings.configuration_set is not None
    return Facility(evidence_within_seconds=settings.events_within_seconds if told else None)


def aws_sms(channel: Channel, secret: str | None, transport: Transport) -> AwsSms:
    """The constructor of the kind `aws_sms`. Raises ValueError."""
    settings = msgspec.convert(dict(channel.settings), AwsSmsSettings)
    place = place_of("sms-voice", "sms-voice", region=settings.region, url=settings.endpoint)
    return AwsSms(aws_service(transport, secret, place), settings)


def message_of(claimed: Claimed, settings: AwsSmsSettings) -> dict[str, Any]:
    """What the recipient would read, and how it goes. Raises `NoText`.

    Source: API reference of End User Messaging SMS, *SendTextMessage*.
    """
    if not E164.fullmatch(claimed.recipient):
        raise NoText("recipient is no phone number (+4915112345678)")
    raw = raw_block(claimed.payload, "aws_sms")
    if taken := [name for name in NOT_IN_RAW if name in raw]:
        raise NoText(f"raw.aws_sms: {taken[0]} is the notification's own")
    said = {**_settled(settings), "MessageBody": plain_text(claimed.payload)}
    message = {"DestinationPhoneNumber": claimed.recipient, **laid_over(said, raw)}
    text, context = message.get("MessageBody"), message.get("Context", {})
    if not isinstance(text, str) or not text.strip():
        raise NoText("nothing to say: no title, body, url or raw.aws_sms.MessageBody")
    if len(text) > CHARACTERS_MAX:
        raise NoText(f"text has {len(text)} characters, AWS takes {CHARACTERS_MAX}")
    room = CONTEXT_MAX - len(tags_of(claimed))
    if not isinstance(context, Mapping) or len(context) > room:
        raise NoText(f"raw.aws_sms: Context is an object, with room for {room} of its own")
    return message


def _settled(settings: AwsSmsSettings) -> dict[str, Any]:
    price = None if settings.max_price_usd is None else f"{settings.max_price_usd:.5f}"
    india = {"IN_ENTITY_ID": settings.entity_id, "IN_TEMPLATE_ID": settings.template_id}
    named = {
        "OriginationIdentity": settings.origination_identity,
        "MessageType": settings.message_type,
        "ConfigurationSetName": settings.configuration_set,
        "ProtectConfigurationId": settings.protect_configuration,
        "MaxPrice": price,
        "Keyword": settings.keyword,
        "DestinationCountryParameters": {k: v for k, v in india.items() if v} or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def ttl_left(claimed: Claimed) -> dict[str, int]:
    """What is left of the expiry, in whole seconds as AWS takes them; without one its own three days."""
    if claimed.expires_in_seconds is None:
        return {}
    left = ttl_of(claimed.expires_in_seconds, TTL_SECONDS_MAX)
    return {"TimeToLive": max(left, TTL_SECONDS_MIN)}


def meaning_of(reply: Reply) -> Outcome:
    """The table of *SendTextMessage* (errors) and of its service model (reasons). Pure.

    A quota that is exceeded is the month's spend or the day's sends: nothing goes until somebody acts, or tomorrow.
    """
    if (outcome := not_answered(reply)) is not None:
        return outcome
    if 200 <= (reply.status or 0) < 300:
        return accepted(reply, message_id(reply), "AWS")
    fault = fault_of(reply)
    said = read_object(reply.body).get("Reason")
    reason = code_of(said) if said else ""
    why = f"{shown(fault, reply)}: {reason}" if reason else shown(fault, reply)
    match fault.code:
        case "ConflictException" if reason == OPTED_OUT:
            return Unregistered(why)
        case "ConflictException" if reason in OF_THE_NUMBER:
            return Rejected(why)
        case "ValidationException" if reason not in OF_THE_CHANNEL:
            return Rejected(why)
        case (
            "AccessDeniedException"
            | "ConflictException"
            | "ResourceNotFoundException"
            | "ServiceQuotaExceededException"
            | "ValidationException"
        ):
            return CredentialFailure(why)
    return shared_meaning(fault, reply)


OPTED_OUT = "DESTINATION_PHONE_NUMBER_OPTED_OUT"
OF_THE_NUMBER = frozenset(  # an account in the sandbox reaches verified numbers alone
    {
        "DESTINATION_PHONE_NUMBER_NOT_VERIFIED",
        "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
        "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
    }
)
OF_THE_CHANNEL = frozenset(
    {
        "CHANNEL_NOT_ENABLED",
        "INVALID_ARN",
        "RESOURCE_NOT_ACCESSIBLE",
        "SENDER_ID_NOT_REGISTERED",
        "SENDER_ID_REQUIRES_REGISTRATION",
    }
)
KIND = SenderKind(build=aws_sms, settings=AwsSmsSettings, facility=facility_of)
