"""Why a notification closed or waits: the short codes of a word. Operators filter by them; keep them stable."""

from typing import Final

ALREADY_DELIVERED: Final = "already_delivered"  # evidence said so before anything was sent
RECONCILED: Final = "reconciled"  # the provider said so when asked
FAILED: Final = "failed"
ATTEMPTS_EXHAUSTED: Final = "attempts_exhausted"
THROTTLED: Final = "throttled"
TOO_OLD: Final = "too_old"  # refunded attempts reached the channel's maximum age
REJECTED: Final = "rejected"
UNREGISTERED: Final = "unregistered"
CREDENTIALS: Final = "credentials"
NOT_SENT: Final = "not_sent"
UNCERTAIN: Final = "uncertain"
HELD: Final = "held"  # policy `hold`
WINDOW_PASSED: Final = "window_passed"  # policy `resend`, and the provider has forgotten the key
NO_EVIDENCE: Final = (
    "no_evidence"  # policy `reconcile`: the provider tells in time, and has told nothing
)
CANNOT_BE_ASKED: Final = "cannot_be_asked"  # policy `reconcile`, and the provider has no answer
NO_ANSWER: Final = (
    "no_answer"  # policy `reconcile`: the provider was asked, and could not say; asked again later
)
OTHER_BYTES: Final = "other_bytes"  # a repeat would differ from what was sent first
EXPIRED: Final = "expired"
EXPIRED_IN_DOUBT: Final = "expired_in_doubt"
POISON: Final = "poison"
RELEASED: Final = "released"
BAD_ROW: Final = "bad_row"  # the database refused the row's own words
RECEIPT_DUE: Final = "receipt_due"  # delivered; its provider tells later what became of it
RECEIPT_LATE: Final = "receipt_late"  # asked about, not there yet; to be asked again
RECEIPT_LAST: Final = "receipt_last"  # the same, for the last time
RECEIPT_MISSING: Final = "receipt_missing"  # there never was one
RECEIPT_REFUSED: Final = "receipt_refused"  # it says: not delivered
RECEIPT_UNKNOWN: Final = "receipt_unknown"  # it says: nobody knows
