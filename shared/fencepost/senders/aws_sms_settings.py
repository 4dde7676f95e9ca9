"""A channel of the kind `aws_sms`: its settings."""

from typing import Annotated, Literal

import msgspec

Named = Annotated[str, msgspec.Meta(min_length=1)]


class AwsSmsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Raises ValueError (as msgspec does). What is left out is the account's own default."""

    region: Named | None = None
    endpoint: Named | None = None
    origination_identity: Named | None = None  # a number, sender id or pool: its id or its ARN
    message_type: Literal["TRANSACTIONAL", "PROMOTIONAL"] | None = None
    configuration_set: Named | None = None  # without one there are no events
    # So long after a send its first event may be under way, from AWS to where evidence is told.
    events_within_seconds: Annotated[float, msgspec.Meta(gt=0)] = 900.0
    protect_configuration: Named | None = None
    max_price_usd: Annotated[float, msgspec.Meta(ge=0.00001, lt=100)] | None = None
    keyword: Named | None = None  # a US short code's program
    entity_id: Named | None = None  # India
    template_id: Named | None = None  # India
