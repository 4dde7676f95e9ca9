"""AWS SES, API v2: one `SendEmail` a notification, to one recipient.

SES has no key against duplicates and cannot be asked what became of a mail whose answer was lost (`GetMessageInsights`
wants the id that the answer would have told). What it offers are events: each mail carries tags that name notification,
fence and attempt, and the events of its configuration set repeat them.
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
    Throttled,
)
from fencepost.core.reply import Reply
from fencepost.ports import Prepared
from fencepost.senders.answer import accepted
from fencepost.senders.aws.fault import (
    fault_of,
    message_id,
    not_answered,
    shared_meaning,
    shown,
    wait_seconds,
)
from fencepost.senders.aws.service import AwsService, aws_service, place_of
from fencepost.senders.aws.tags import tags_of
from fencepost.senders.body import digest_of, json_body, too_large
from fencepost.senders.kind import SenderKind
from fencepost.senders.ses_mail import READ, NoMail, mail_of
from fencepost.senders.ses_settings import SesSettings
from fencepost.senders.transport import Transport

PATH = "/v2/email/outbound-emails"
BODY_BYTES_MAX = 40 * 1024 * 1024  # of a mail as it is sent on
QUOTA_WAIT_SECONDS = (
    600.0  # "wait for an interval of up to 10 minutes"; the quota is of a day that moves along
)


class Ses:
    """The sender."""

    def __init__(self, service: AwsService, settings: SesSettings) -> None:
        self._service = service
        self._settings = settings
        self.facility = facility_of(settings)

    def prepare(self, claimed: Claimed) -> Prepared | Outcome:
        try:
            mail = mail_of(claimed.payload, claimed.recipient, self._settings)
            read = json_body({key: mail[key] for key in READ if key in mail})
        except NoMail as wrong:
            return Rejected(str(wrong))
        except ValueError:  # its text would quote the payload
            return Rejected("payload has no JSON form")
        return too_large(len(read), BODY_BYTES_MAX) or Prepared(digest_of(read), mail)

    async def send(self, claimed: Claimed, prepared: Prepared, *, timeout_seconds: float) -> Reply:
        mail = cast("Mapping[str, Any]", prepared.request)
        tagged = {**mail, "EmailTags": self._tags(claimed, mail)}
        return await self._service.post(
            PATH, "application/json", json_body(tagged), timeout_seconds=timeout_seconds
        )

    def classify(self, claimed: Claimed, reply: Reply) -> Outcome:
        return meaning_of(reply)

    async def ask(self, claimed: Claimed, *, timeout_seconds: float) -> Outcome | None:
        return None

    def _tags(self, claimed: Claimed, mail: Mapping[str, Any]) -> list[Any]:
        tags = {**self._settings.tags, **tags_of(claimed)}
        return [*mail.get("EmailTags", ()), *({"Name": key, "Value": tags[key]} for key in tags)]


def facility_of(settings: SesSettings) -> Facility:
    """Events tell by themselves, where a configuration set sends them on."""
    told = settings.configuration_set is not None
    return Facility(evidence_within_seconds=settings.events_within_seconds if told else None)


def ses(channel: Channel, secret: str | None, transport: Transport) -> Ses:
    """The constructor of the kind `ses`. Raises ValueError."""
    settings = msgspec.convert(dict(channel.settings), SesSettings)
    place = place_of("ses", "email", region=settings.region, url=settings.endpoint)
    return Ses(aws_service(transport, secret, place), settings)


def meaning_of(reply: Reply) -> Outcome:
    """The table of SES API v2, *SendEmail* and *Common Errors*. Pure.

    That a quota is exceeded comes as TooManyRequestsException or ThrottlingException; whether for a second or for a day
    its text tells ("Errors related to the sending quotas"). An identity that is not verified, and every recipient of an
    account in the sandbox, come as MessageRejected.
    """
    if (outcome := not_answered(reply)) is not None:
        return outcome
    if 200 <= (reply.status or 0) < 300:
        return accepted(reply, message_id(reply), "SES")
    fault = fault_of(reply)
    why = shown(fault, reply)
    match fault.code:
        case "TooManyRequestsException" | "ThrottlingException" | "Throttling" if _of_the_day(
            fault.text
        ):
            return Throttled(f"{why}: the daily quota", QUOTA_WAIT_SECONDS)
        case "LimitExceededException":
            return Throttled(why, wait_seconds(reply) or QUOTA_WAIT_SECONDS)
        case "MessageRejected" if "not verified" in fault.text:
            return CredentialFailure(
                f"{why}: an address is not verified, or the account is in the sandbox"
            )
        case "MessageRejected" | "BadRequestException":
            return Rejected(why)
        case (
            "AccountSuspendedException"
            | "MailFromDomainNotVerifiedException"
            | "NotFoundException"  # configuration set, contact list or template: nothing of the recipient's
            | "SendingPausedException"
        ):
            return CredentialFailure(why)
    return shared_meaning(fault, reply)


def _of_the_day(text: str) -> bool:
    return "Daily message quota" in text or "Daily sending quota" in text


KIND = SenderKind(build=ses, settings=SesSettings, facility=facility_of)
