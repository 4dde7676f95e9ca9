"""What a send without an answer means: the same for every provider, since the phase alone decides."""

from typing import assert_never

from fencepost.core.outcome import NotSent, Rejected, Uncertain
from fencepost.core.reply import Phase, Reply
from fencepost.senders.trouble import Trouble


def unanswered(reply: Reply) -> NotSent | Rejected | Uncertain | None:
    """None: it was answered, and the provider's own table decides."""
    match reply.phase:
        case Phase.NOT_SENT if reply.reason == Trouble.ADDRESS_FORBIDDEN:
            return Rejected(_why(reply))
        case Phase.NOT_SENT:
            return NotSent(_why(reply))
        case Phase.UNCERTAIN:
            return Uncertain(_why(reply))
        case Phase.ANSWERED:
            return None
    assert_never(reply.phase)


def _why(reply: Reply) -> str:
    return f"{reply.reason}: {reply.error}" if reply.error else reply.reason
