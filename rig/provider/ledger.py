"""The provider's own ledger: every arrival, every effect, every answer. On disk before an answer leaves."""

import hashlib
import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig.provider.behaviour import Door, Plan


@dataclass(slots=True, kw_only=True)
class Arrival:
    """One signed request that reached us whole."""

    number: int
    at: float  # seconds, of the provider's own clock
    subject: str  # which notification, whatever key it came with
    key: str  # webhook-id
    door: str
    behaviour: str
    digest: str  # of the body
    acted: bool  # the effect happened here and now
    duplicate: bool  # this key had already had its effect
    status: int | None = None  # what was answered
    ended: str | None = None  # answered, cut (by us), left (by the sender)

    @property
    def may_be_accepted(self) -> bool:
        """As its sender must see it: acted on, or not answered. What was refused by a status was not."""
        return self.acted or self.duplicate or self.status is None


class Ledger:
    """Append-only file plus an index in memory; opening it again reads the file."""

    def __init__(self, path: Path) -> None:
        self.arrivals: list[Arrival] = []
        self.refused_signatures = 0
        self._acted_keys: set[str] = set()
        self._seen: Counter[str] = Counter()
        if path.exists():
            for line in path.read_text().splitlines():
                self._read(json.loads(line))
        self._file = path.open("a", buffering=1)

    def seen(self, subject: str) -> int:
        return self._seen[subject]

    def arrive(self, subject: str, key: str, door: Door, plan: Plan, body: bytes) -> Arrival:
        """Write down an arrival, and its effect where there is one: the effect is this line."""
        duplicate = key in self._acted_keys
        arrival = Arrival(
            number=len(self.arrivals),
            at=time.time(),
            subject=subject,
            key=key,
            door=door,
            behaviour=plan.behaviour,
            digest=hashlib.sha256(body).hexdigest()[:32],
            acted=plan.acts and not (duplicate and door is Door.DEDUPES),
            duplicate=duplicate,
        )
        self._index(arrival)
        self._write({"arrival": asdict(arrival)})
        return arrival

    def end(self, arrival: Arrival, ended: str, status: int | None = None) -> None:
        """Write down how it ended; only the first end of an arrival counts."""
        if arrival.ended is None:
            arrival.ended, arrival.status = ended, status
            self._write({"end": arrival.number, "ended": ended, "status": status})

    def refuse_signature(self) -> None:
        self.refused_signatures += 1
        self._write({"refused_signature": 1})

    def close(self) -> None:
        self._file.close()

    def _index(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        self._seen[arrival.subject] += 1
        if arrival.acted:
            self._acted_keys.add(arrival.key)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _read(self, line: dict[str, Any]) -> None:
        if "arrival" in line:
            self._index(Arrival(**line["arrival"]))
        elif "end" in line:
            arrival = self.arrivals[line["end"]]
            arrival.ended, arrival.status = line["ended"], line["status"]
        else:
            self.refused_signatures += 1
