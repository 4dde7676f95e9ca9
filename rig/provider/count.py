"""What the ledger comes to: the numbers the demo and the drills compare with the database."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rig.provider.behaviour import Door
from rig.provider.ledger import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Over all arrivals. A subject is a notification by its address, whatever key it came with."""

    arrivals: int
    subjects: int  # that arrived at all
    effects: int
    subjects_with_effect: int
    duplicate_arrivals: (
        int  # came again after their effect, and were dropped or (plain) acted on again
    )
    duplicate_effects: int  # effects beyond the first of a subject; must be 0
    plain_sent_again: (
        int  # arrivals at the plain door after one that may have been accepted; must be 0
    )
    changed_keys: int  # subjects that came under more than one key; must be 0
    changed_bodies: int  # keys that came with more than one body; must be 0
    unanswered: int  # cut by us, or left by the sender
    refused_signatures: int
    by_behaviour: dict[str, int]


def count(arrivals: Iterable[Arrival], refused_signatures: int) -> Count:
    known = list(arrivals)
    effects = Counter(one.subject for one in known if one.acted)
    keys, bodies = defaultdict(set), defaultdict(set)
    for one in known:
        keys[one.subject].add(one.key)
        bodies[one.key].add(one.digest)
    return Count(
        arrivals=len(known),
        subjects=len(keys),
        effects=sum(effects.values()),
        subjects_with_effect=len(effects),
        duplicate_arrivals=sum(one.duplicate for one in known),
        duplicate_effects=sum(times - 1 for times in effects.values()),
        plain_sent_again=_sent_again(one for one in known if one.door == Door.PLAIN),
        changed_keys=sum(len(found) > 1 for found in keys.values()),
        changed_bodies=sum(len(found) > 1 for found in bodies.values()),
        unanswered=sum(one.ended is not None and one.status is None for one in known),
        refused_signatures=refused_signatures,
        by_behaviour=dict(Counter(one.behaviour for one in known)),
    )


def _sent_again(arrivals: Iterable[Arrival]) -> int:
    doubtful: set[str] = set()
    again = 0
    for one in arrivals:
        again += one.subject in doubtful
        if one.may_be_accepted:
            doubtful.add(one.subject)
    return again
