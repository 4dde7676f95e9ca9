"""What can go wrong in a schedule, how often, and how often it really did: a fault that never fires proves nothing."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    CRASH = "crash"  # a run dies without a word
    KILLER = "killer"  # a row that kills the run which sends it
    INTERRUPTED = "interrupted"  # a row that two runs have died of already
    STALL = "stall"  # a run is frozen for a while
    STALL_PAST_END = "stall_past_end"  # and wakes when its invocation is over
    LOST_REQUEST = "lost_request"  # never reached the database
    LOST_REPLY = "lost_reply"  # committed, and nobody heard
    GHOST = "ghost"  # given up, and committed later
    RETRY = "retry"  # deadlock, serialization
    REFUSED = "refused"
    AWAY = "away"  # the database is away for a while
    SLOW_DATABASE = "slow_database"
    CLOCK_FORTH = "clock_forth"  # the database's
    CLOCK_BACK = "clock_back"
    BUSY_CHANNEL = "busy_channel"
    BAD_DETAIL = "bad_detail"  # the database refuses the word's details
    BAD_WORD = "bad_word"  # it refuses the row's words but for parking
    HOPELESS_WORD = "hopeless_word"  # it refuses any word of the row
    BAD_CLAIM = "bad_claim"  # it refuses the claim of a channel
    BAD_REST = "bad_rest"  # it refuses renewals and gate words
    SLOW_SEND = "slow_send"  # past the timeout
    OVERSHOOT = "overshoot"  # a sender that keeps no deadline
    ACCEPT_THEN_DROP = "accept_then_drop"
    DROP = "drop"  # a byte left, and nothing was accepted
    NOT_SENT = "not_sent"
    THROTTLED = "throttled"
    FAILED = "failed"
    REJECTED = "rejected"
    CREDENTIALS = "credentials"
    GONE = "gone"
    DEAD_PROVIDER = "dead_provider"  # a provider, or one host behind a channel, fails for a while
    BREAKER = "breaker"  # a run paused a channel for it
    MASS = "mass"  # a run paused a channel for too many that are gone
    DEAF_CANCEL = "deaf_cancel"  # the send was cancelled, and accepted all the same
    OTHER_BYTES = "other_bytes"  # a newer version of the code renders it otherwise
    CANCEL = "cancel"
    REDRIVE = "redrive"
    EVIDENCE = "evidence"
    REPAIR = "repair"
    OWN_TAKEOVER = "own_takeover"  # a run takes over a row it still sends
    LATE_REPLY = "late_reply"  # a word that found its lease gone
    UNSAID = "unsaid"  # knowledge that left as an evidence message


@dataclass(slots=True)
class Plan:
    """The faults of one schedule: some kinds, each with a chance of its own. `on` ends when the calm begins."""

    rng: Random
    chances: dict[Fault, float]
    fired: Counter[Fault]
    on: bool = True

    @classmethod
    def of(cls, rng: Random) -> "Plan":
        share = rng.choice((0.15, 0.4, 0.8))
        chances = {fault: rng.choice((0.02, 0.1, 0.3)) for fault in Fault if rng.random() < share}
        if Fault.DEAF_CANCEL in chances:
            chances[Fault.DEAF_CANCEL] = 1.0  # there are few cancels to be deaf to
        return cls(rng, chances, Counter())

    def strikes(self, fault: Fault) -> bool:
        """Throw the dice; a hit is counted."""
        if not self.on or self.rng.random() >= self.chances.get(fault, 0.0):
            return False
        self.fired[fault] += 1
        return True

    def has(self, fault: Fault) -> bool:
        return fault in self.chances
