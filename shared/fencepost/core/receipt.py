"""Receipts: what a provider tells, some time after it accepted a message, of what became of it. Pure.

A message it accepted closes its notification as delivered, with the reason `receipt_due`. The receipt is evidence of
that attempt. It opens nothing again: whoever gave the message away has given it away.
"""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fencepost.core import reason
from fencepost.core.notification import AttemptOutcome, ChannelId, Fence, NotificationId
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.transition import CREDENTIAL_PAUSE_SECONDS


class ReceiptDue(Struct, frozen=True, kw_only=True):
    """A notification to be asked about, by the provider's reference."""

    id: NotificationId
    fence: Fence  # of the attempt that was accepted
    channel: ChannelId
    reference: str


class ReceiptTold(Struct, frozen=True, kw_only=True):
    """What a receipt comes to. `outcome` None: the provider does not know. `reason`: what stands at the notification
    from now on; None: all is well. `pause_seconds`: of its channel, whose credentials at the provider are wrong."""

    due: ReceiptDue
    outcome: AttemptOutcome | None
    reason: str | None = None
    detail: str | None = None
    gone: Unregistered | None = None
    pause_seconds: float | None = None


def told(due: ReceiptDue, receipt: Outcome) -> ReceiptTold:
    """The one table: a receipt → evidence, and the notification's reason."""
    match receipt:
        case Delivered():
            return ReceiptTold(due=due, outcome=AttemptOutcome.DELIVERED)
        case Unregistered():
            return _refused(due, AttemptOutcome.REJECTED, receipt.reason, receipt)
        case Rejected(reason=why):
            return _refused(due, AttemptOutcome.REJECTED, why)
        case CredentialFailure(reason=why):
            failed = _refused(due, AttemptOutcome.FAILED, why)
            return replace(failed, pause_seconds=CREDENTIAL_PAUSE_SECONDS)
        case Failed(reason=why) | Throttled(reason=why):
            return _refused(due, AttemptOutcome.FAILED, why)
        case NotSent(reason=why):
            return _refused(due, AttemptOutcome.NOT_SENT, why)
        case Uncertain(reason=why):
            return ReceiptTold(due=due, outcome=None, reason=reason.RECEIPT_UNKNOWN, detail=why)
        case _:
            assert_never(receipt)


def _refused(
    due: ReceiptDue, outcome: AttemptOutcome, why: str, gone: Unregistered | None = None
) -> ReceiptTold:
    code = reason.RECEIPT_REFUSED
    return ReceiptTold(due=due, outcome=outcome, reason=code, detail=why, gone=gone)
