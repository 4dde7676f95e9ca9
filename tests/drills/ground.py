"""What a drill stands on: a database of its own, a provider with a ledger of its own, real runtimes."""

import itertools
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from rig.ground import wait_until
from rig.invoked import Invoked
from rig.receiver import SECRET, LocalProvider
from rig.runtimes import Runtime

INSTALLATION = "drill"
ANY_ADDRESS = "0.0.0.0"  # all of 127.0.0.0/8 leads there, so that a drill can have many hosts
HOSTS = 200
SEND_SECONDS = 3.0  # long enough to be seen in mid-send on a busy machine
LEASE_SECONDS = 4.0
FUNCTION_SECONDS = 120  # so long that a slow machine ends no run; what is about that says its own
ANSWER_SECONDS = 200.0  # whoever waits longer for an answer has failed
TIMING = {
    "FENCEPOST_SEND_TIMEOUT_SECONDS": str(SEND_SECONDS),
    "FENCEPOST_SETTLE_RESERVE_SECONDS": "0.4",
    "FENCEPOST_LEASE_SECONDS": str(LEASE_SECONDS),
}
POLICY = {"backoff_base_seconds": 0.2, "backoff_cap_seconds": 0.5, "retry_after_max_seconds": 2}
SETTINGS = {"allow_http": True, "allow_private_networks": True}


@dataclass(slots=True)
class Ground:
    """One drill's surroundings. The connection belongs to the drill's own thread."""

    url: str
    connection: psycopg.Connection
    provider: LocalProvider
    folder: Path
    _runtimes: list[Runtime] = field(default_factory=list)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(16))
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def channel(
        self, name: str = "way", *, on_uncertain: str = "resend", slots: int = 4, **policy: float
    ) -> None:
        channel = {
            "name": name,
            "sender": "webhook",
            "settings": SETTINGS,
            "secret_reference": "env:DRILL_SECRET",
            "on_uncertain": on_uncertain,
            "slots": slots,
            "policy": {**POLICY, **policy},
        }
        self.connection.execute("select fencepost.bind(%s)", (INSTALLATION,))
        self.connection.execute(
            "select * from fencepost.channel_apply(%s::jsonb)", (json.dumps([channel]),)
        )

    def enqueue(
        self, count: int, behaviour: str = "ok", *, times: int = 1, door: str = "dedupes"
    ) -> list[str]:
        """Due now, on channel `way`. Their subjects, which are their dedupe keys too."""
        subjects = [f"{behaviour}-{next(self._numbers)}" for _ in range(count)]
        for place, subject in enumerate(subjects):
            host = place % HOSTS if behaviour == "gate" else 0
            recipient = f"{self.root(host)}/{door}/{behaviour}/{times}/{subject}"
            self.connection.execute(
                "select fencepost.enqueue('way', %s, %s::jsonb, dedupe_key => %s)",
                (recipient, json.dumps({"title": "drill", "body": subject}), subject),
            )
        return subjects

    def root(self, host: int = 0) -> str:
        """Of the provider under one of its names: a silent host gets but a share of the slots."""
        return self.provider.url.replace(ANY_ADDRESS, f"127.0.0.{host + 1}")

    def runtime(
        self, environment: Mapping[str, str] = {}, *, timeout_seconds: int = FUNCTION_SECONDS
    ) -> Runtime:
        own = {
            "DATABASE_URL": self.url,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "DRILL_SECRET": SECRET,
            **TIMING,
            **environment,
        }
        name = f"drill-{len(self._runtimes) + 1}"
        runtime = Runtime(own, timeout_seconds=timeout_seconds, folder=self.folder, name=name)
        self._runtimes.append(runtime)
        return runtime.start()

    def warm(self, runtime: Runtime) -> Runtime:
        """Its interpreter started: a cold start would eat into the time it has, and on a slow machine all of it."""
        wait_until(lambda: runtime.invoke(event("warm")).summary is not None, 30, "a warm start")
        return runtime

    def invoke(self, runtime: Runtime, tick: str = "tick") -> "Future[Invoked]":
        """In the background."""
        return self._threads.submit(runtime.invoke, event(tick))

    def run_until(self, done: Callable[[], bool], runtime: Runtime, seconds: float = 30) -> None:
        """One tick after another, until it can be seen that it is done."""

        def tick_and_look() -> bool:
            result = runtime.invoke(event("until"))
            assert result.summary is not None, result
            return done()

        wait_until(tick_and_look, seconds, "the drill's end by further ticks")

    def closed(self) -> bool:
        return self.number("select count(*) from fencepost.queue") == 0

    def number(self, query: str, values: Mapping[str, Any] | None = None) -> int:
        row = self.connection.execute(query.encode(), values).fetchone()
        assert row is not None
        return int(row[0])

    def rows(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.encode(), values).fetchall()

    def arrived(self, subjects: list[str]) -> int:
        """How many of them the provider has seen."""
        return len({one.subject for one in self.provider.arrivals()} & set(subjects))

    def assert_conserved(self) -> None:
        """G3, counted here and not by the product."""
        misplaced = self.rows(MISPLACED)
        assert misplaced == []

    def end(self) -> None:
        for runtime in self._runtimes:
            runtime.end()
        self._threads.shutdown()


MISPLACED = """
select n.id from fencepost.notification n
 where (select count(*) from fencepost.queue q where q.notification_id = n.id)
     + (select count(*) from fencepost.closed c where c.notification_id = n.id) <> 1"""


def event(tick: str) -> dict[str, Any]:
    """EventBridge Scheduler's event with this id."""
    template = Path(__file__).parents[2] / "events" / "tick.json"
    return {**json.loads(template.read_text()), "id": tick}
