"""What became of a message Twilio took: its status and error code, as a list or a callback tells them. Pure.

Sources: twilio.com/docs/messaging/api/message-resource (*Status values*) and the pages of the errors: 30003 unreachable
handset ("a transient failure": try again), 30004 blocked, 30005 unknown handset, 30006 a landline, or a carrier that a
short code of ours does not reach, 30007 filtered, 30008 unknown error, 30036 the validity period is over.
"""

from fencepost.core.outcome import Delivered, Failed, Outcome, Rejected, Uncertain, Unregistered

TAKEN = {"accepted", "scheduled", "queued", "sending", "sent", "delivered", "read"}
NOT_ARRIVED = {"failed", "undelivered"}
LANDLINE_OR_OUR_SHORT_CODE = 30006
GONE = {21211, 21610, 21614, 21635, 30005, LANDLINE_OR_OUR_SHORT_CODE}
REFUSED = {30004, 30007, 30036}
UNKNOWN = 30008


def meaning_of_status(status: str, error_code: int | None, sid: str | None) -> Outcome | None:
    """`Delivered` means what it means everywhere: the provider has taken it. None: a status nobody knows."""
    if status in TAKEN:
        return Delivered(sid)
    if status == "canceled":
        return Rejected("canceled at Twilio")
    if status not in NOT_ARRIVED:
        return None
    reason = f"{status} {error_code}" if error_code is not None else status
    if error_code in GONE:
        return Unregistered(reason, guarded=error_code == LANDLINE_OR_OUR_SHORT_CODE)
    if error_code in REFUSED:
        return Rejected(reason)
    return Uncertain(reason) if error_code == UNKNOWN else Failed(reason)
