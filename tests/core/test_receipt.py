"""The table of receipts: what each comes to as evidence, and what stands at the notification afterwards."""

import pytest

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
from fencepost.core.receipt import ReceiptDue, told
from fencepost.core.transition import CREDENTIAL_PAUSE_SECONDS

A = AttemptOutcome
DUE = ReceiptDue(id=NotificationId(7), fence=Fence(2), channel=ChannelId(1), reference="T")


@pytest.mark.parametrize(
    ("receipt", "outcome", "reason", "detail"),
    [
        (Delivered("T"), A.DELIVERED, None, None),
        (Rejected("why"), A.REJECTED, "receipt_refused", "why"),
        (Unregistered("why"), A.REJECTED, "receipt_refused", "why"),
        (Failed("why"), A.FAILED, "receipt_refused", "why"),
        (Throttled("why"), A.FAILED, "receipt_refused", "why"),
        (CredentialFailure("why"), A.FAILED, "receipt_refused", "why"),
        (NotSent("why"), A.NOT_SENT, "receipt_refused", "why"),
        (Uncertain("why"), None, "receipt_unknown", "why"),
    ],
)
def test_what_a_receipt_comes_to(
    receipt: Outcome, outcome: AttemptOutcome | None, reason: str | None, detail: str | None
) -> None:
    word = told(DUE, receipt)
    assert word.due is DUE
    assert (word.outcome, word.reason, word.detail) == (outcome, reason, detail)
    assert word.gone == (receipt if isinstance(receipt, Unregistered) else None)
    pauses = isinstance(receipt, CredentialFailure)
    assert word.pause_seconds == (CREDENTIAL_PAUSE_SECONDS if pauses else None)
