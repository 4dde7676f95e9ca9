"""A channel of the kind `sns`: its settings. One channel may serve both endpoints of apps and phone numbers."""

from typing import Annotated, Literal

import msgspec

from fencepost.senders.pattern import like

Named = Annotated[str, msgspec.Meta(min_length=1)]
Phone = Annotated[str, like(r"^\+?[0-9]{3,15}$", "3 to 15 digits, with or without a + before them")]


class SnsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Raises ValueError (as msgspec does). What is left out is the account's own default."""

    region: Named | None = None
    endpoint: Named | None = None
    # Only endpoints of this account: IAM refuses another's as it refuses a channel without permission.
    account_id: Annotated[str, like(r"^[0-9]{12}$", "twelve digits")] | None = None
    sms_type: Literal["Promotional", "Transactional"] | None = None
    sms_sender_id: (
        Annotated[str, like(r"^[A-Za-z0-9-]{1,11}$", "1 to 11 letters, digits or hyphens")] | None
    ) = None
    sms_origination_number: Phone | None = None
    sms_max_price_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    sms_entity_id: Named | None = None  # India
    sms_template_id: Named | None = None  # India

    @property
    def sms_attributes(self) -> dict[str, str]:
        """As message attributes. All are strings but the price, which is a number; see `data_type_of`."""
        price = None if self.sms_max_price_usd is None else f"{self.sms_max_price_usd:.5f}"
        named = {
            "AWS.SNS.SMS.SMSType": self.sms_type,
            "AWS.SNS.SMS.SenderID": self.sms_sender_id,
            MAX_PRICE: price,
            "AWS.MM.SMS.OriginationNumber": self.sms_origination_number,
            "AWS.MM.SMS.EntityId": self.sms_entity_id,
            "AWS.MM.SMS.TemplateId": self.sms_template_id,
        }
        return {name: value for name, value in named.items() if value is not None}


MAX_PRICE = "AWS.SNS.SMS.MaxPrice"


def data_type_of(attribute: str) -> str:
    return "Number" if attribute == MAX_PRICE else "String"
