"""The schedule: every second a tick to a runtime that is free, as EventBridge Scheduler would start one more."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rig.ground import ROOT
from rig.invoked import Invoked
from rig.runtimes import Runtime

TEMPLATE = ROOT / "events" / "tick.json"


@dataclass(slots=True)
class Invocation:
    """One tick on its way through one runtime. `ended` is None until it ends."""

    runtime: Runtime
    tick: str  # the event's id; the run it starts bears it as its invocation
    began: float  # monotonic
    ended: Invoked | None = None

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self.began


def tick_event(number: str) -> Mapping[str, Any]:
    """The schedule's event, with an id of its own."""
    event: dict[str, Any] = json.loads(TEMPLATE.read_text())
    return {**event, "id": number}


@dataclass(slots=True)
class Schedule:
    """Hands ticks to runtimes. A tick that finds none free is dropped: the next one is its retry."""

    runtimes: list[Runtime]  # the longest unused first
    report: Callable[[Invocation], None]  # when an invocation has ended
    invocations: list[Invocation] = field(default_factory=list)
    dropped: int = 0
    _threads: list[threading.Thread] = field(default_factory=list)

    def tick(self) -> None:
        under_way = {one.runtime.name for one in self.under_way()}
        free = [runtime for runtime in self.runtimes if runtime.name not in under_way]
        if not free:
            self.dropped += 1
            return
        runtime = free[0]
        self.runtimes = [one for one in self.runtimes if one is not runtime] + [runtime]
        invocation = Invocation(runtime, str(uuid.uuid4()), time.monotonic())
        self.invocations.append(invocation)
        thread = threading.Thread(target=self._invoke, args=(invocation,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def under_way(self) -> list[Invocation]:
        return [one for one in self.invocations if one.ended is None]

    def join(self, seconds: float) -> None:
        """Wait for the invocations under way, so long at most."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _invoke(self, invocation: Invocation) -> None:
        invocation.ended = invocation.runtime.invoke(tick_event(invocation.tick))
        self.report(invocation)
