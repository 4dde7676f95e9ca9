"""How the provider answers: written in the path of each recipient, so that every notification chooses its own.

`/DOOR/BEHAVIOUR/TIMES/SUBJECT`: the first TIMES arrivals of SUBJECT are treated so, all later ones with `ok`.
DOOR `dedupes`: a compliant receiver, which acts once per webhook-id. DOOR `plain`: acts at every acceptance.
"""

import random
from dataclasses import dataclass, replace
from enum import StrEnum

SLOW_SECONDS = (0.05, 0.6)
DRIP_SECONDS = 0.25  # between two bytes


class Door(StrEnum):
    DEDUPES = "dedupes"
    PLAIN = "plain"


class Behaviour(StrEnum):
    """Acts: the effect happens. In brackets: what the sender gets to see."""

    OK = "ok"  # acts [200]
    CREATED = "created"  # acts [201]
    SLOW = "slow"  # acts [200, within a second]
    THROTTLE = "throttle"  # [429 with Retry-After: 1]
    BUSY = "busy"  # [503 with Retry-After: 1]
    ERROR = "error"  # [500]
    GONE = "gone"  # [410]
    REFUSE = "refuse"  # [400]
    DROP = "drop"  # acts [connection cut before any byte of an answer]
    STALL = "stall"  # acts [nothing, for ever]
    HANG = "hang"  # [nothing, for ever]
    DRIP = "drip"  # acts [an answer too slow to wait for]
    GATE = "gate"  # acts [200 once the test opens the gate]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with one arrival. No status: no answer of its own accord."""

    behaviour: Behaviour
    acts: bool
    status: int | None
    delay_seconds: float = 0.0
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Address:
    door: Door
    behaviour: Behaviour
    times: int
    subject: str


def read_address(path: str) -> Address | None:
    """None: no such address here (404)."""
    parts = path.strip("/").split("/", 3)
    if len(parts) != 4 or not parts[2].isdigit():
        return None
    try:
        return Address(Door(parts[0]), Behaviour(parts[1]), int(parts[2]), parts[3])
    except ValueError:
        return None


PLANS = {
    Behaviour.OK: Plan(Behaviour.OK, True, 200),
    Behaviour.CREATED: Plan(Behaviour.CREATED, True, 201),
    Behaviour.SLOW: Plan(Behaviour.SLOW, True, 200),
    Behaviour.THROTTLE: Plan(Behaviour.THROTTLE, False, 429, retry_after_seconds=1),
    Behaviour.BUSY: Plan(Behaviour.BUSY, False, 503, retry_after_seconds=1),
    Behaviour.ERROR: Plan(Behaviour.ERROR, False, 500),
    Behaviour.GONE: Plan(Behaviour.GONE, False, 410),
    Behaviour.REFUSE: Plan(Behaviour.REFUSE, False, 400),
    Behaviour.DROP: Plan(Behaviour.DROP, True, None),
    Behaviour.STALL: Plan(Behaviour.STALL, True, None),
    Behaviour.HANG: Plan(Behaviour.HANG, False, None),
    Behaviour.DRIP: Plan(Behaviour.DRIP, True, 200, delay_seconds=DRIP_SECONDS),
    Behaviour.GATE: Plan(Behaviour.GATE, True, 200),
}


def plan(address: Address, arrivals_before: int, seed: int) -> Plan:
    """Seeded: the same subject is as slow in every run."""
    chosen = PLANS[address.behaviour if arrivals_before < address.times else Behaviour.OK]
    if chosen.behaviour is not Behaviour.SLOW:
        return chosen
    delay = random.Random(f"{seed} {address.subject}").uniform(*SLOW_SECONDS)
    return replace(chosen, delay_seconds=delay)
