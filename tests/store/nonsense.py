"""A channel whose provider answers nonsense, a sound one beside it, whole runs over both, and what is asked of them."""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg.types.json import Jsonb

from fencepost.core.access import Database
from fencepost.core.budget import Timing
from fencepost.core.explain import explain
from fencepost.core.line import Line
from fencepost.core.notification import NotificationId
from fencepost.senders.dial import Endpoint
from fencepost.senders.registry import SenderRegistry
from fencepost.senders.transport import Transport
from fencepost.settings import Settings
from fencepost.store.operator import Operator
from fencepost.store.postgres import PostgresStore
from fencepost.worker import Parts, Worker
from tests.senders.peers import Peer
from tests.senders.stage import HOST, client_context
from tests.senders.test_registry import SECRET as WEBHOOK_SECRET
from tests.senders.threaded import serving
from tests.store.postgres_bench import PostgresBench

PATIENT = Timing(send_timeout_seconds=6.0, lease_seconds=10.0)  # nobody is late on a busy machine
BRIEF = Timing(send_timeout_seconds=2.0, lease_seconds=6.0)  # for those who never answer
CHANNELS = """
insert into fencepost.channel (name, sender, settings, secret_reference, on_uncertain, slots, policy)
values ('odd', %s, %s, 'odd', 'resend', %s, '{"backoff_base_seconds": 600, "attempts_max": 100}'),
       ('sound', 'webhook', '{"allow_http": true, "allow_private_networks": true}', 'sound', 'hold', 5, '{}')"""
OPEN_AGAIN = "update fencepost.channel set paused_until = default, pause_reason = default"
ENQUEUE = "select id from fencepost.enqueue(%s, %s, %s)"
CLOSED = """
select k.kind::text, k.attempts, count(*)
  from fencepost.closed k join fencepost.notification n on n.id = k.notification_id
  join fencepost.channel c on c.id = n.channel
 where c.name = %s group by 1, 2"""
OUTCOMES = """
select distinct a.outcome::text
  from fencepost.attempts a join fencepost.notification n on n.id = a.notification_id
  join fencepost.channel c on c.id = n.channel
 where c.name = 'odd' and a.outcome is not null"""
PAYLOAD = {"title": "payload-secret ☎ 😀", "body": "payload-secret"}
KEPT = ("notification", "channel")  # whose business the message and its recipient are
SOUND = 5


@dataclass
class Ground:
    """`hidden`: what must be seen nowhere."""

    bench: PostgresBench
    worker: Worker
    hidden: Sequence[str]
    sound_url: str
    seconds: float  # of a run
    lines: list[Line] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    ids: list[NotificationId] = field(default_factory=list)

    def enqueue(self, recipient: str, count: int) -> None:
        for _ in range(count):
            ((id,),) = self.bench.rows(ENQUEUE, ["odd", recipient, Jsonb(PAYLOAD)])
            self.ids.append(NotificationId(id))
        for _ in range(SOUND):
            self.bench.rows(ENQUEUE, ["sound", self.sound_url, Jsonb(PAYLOAD)])

    def run_until(self, seen: Callable[[], bool], runs_max: int) -> None:
        """Run after run, every pause lifted in between and every row due again."""
        for _ in range(runs_max):
            self.bench.admin.execute(OPEN_AGAIN)
            self.worker.deliver(remaining_seconds=self.seconds, correlation="tick")
            assert not self.worker.spoilt
            if seen():
                return
            self.bench.advance(1300)
        raise AssertionError(f"not after {runs_max} runs")

    def outcomes(self) -> set[str]:
        """Of all attempts on the odd channel."""
        return {outcome for (outcome,) in self.bench.rows(OUTCOMES)}

    def delivered(self) -> int:
        return sum(
            count for kind, _, count in self.bench.rows(CLOSED, ["odd"]) if kind == "delivered"
        )

    def assert_honest(self) -> None:
        """Nothing lost, no bug met, the sound channel untouched (G9), nothing told (G10)."""
        assert self.bench.conserved()
        said = self.said()
        assert "bug in" not in said
        assert [each for each in ("payload-secret", *self.hidden) if each in said] == []
        assert self.bench.rows(CLOSED, ["sound"]) == [("delivered", 1, SOUND)]

    def said(self) -> str:
        """Every line, number, explanation, and every text that the database keeps beside the messages themselves."""
        with Operator(self.bench.url, who="tester") as operator:
            told = [str(explain(seen)) for seen in map(operator.inspect, self.ids) if seen]
        assert len(told) == len(self.ids)
        ours = [str(line) for line in self.lines] + [repr(number) for number in self.numbers]
        return json.dumps([*ours, *told, *self._kept()], ensure_ascii=False, default=str)

    def _kept(self) -> Iterator[str]:
        tables = "select tablename from pg_tables where schemaname = 'fencepost' and tablename not like 'migration%'"
        for (table,) in self.bench.rows(tables):
            if table not in KEPT:
                yield from (
                    row for (row,) in self.bench.rows(f"select t::text from fencepost.{table} t")
                )
        yield from (
            str(row)
            for row in self.bench.rows("select pause_reason, skip_reason from fencepost.channel")
        )


@contextlib.contextmanager
def ground(
    bench: PostgresBench,
    kind: str,
    settings: dict[str, Any],
    secret: str,
    *,
    hidden: Sequence[str],
    tls_port: int | None = None,
    slots: int = 1,
    timing: Timing = PATIENT,
) -> Iterator[Ground]:
    """`tls_port`: where the name of the TLS servers leads."""
    bench.admin.execute(CHANNELS, [kind, Jsonb(settings), slots])
    secrets = {"odd": secret, "sound": WEBHOOK_SECRET}

    async def here(host: str, port: int) -> Sequence[Endpoint]:
        return [Endpoint(socket.AF_INET, ("127.0.0.1", tls_port or port if host == HOST else port))]

    def read(reference: str, *, anew: bool = False) -> str:
        return secrets[reference]

    lines: list[Line] = []
    numbers: list[Any] = []
    parts = Parts(
        store=PostgresStore(bench.url),
        senders=SenderRegistry(read, Transport(context=client_context(), resolve=here)),
        lines=lines.append,
        metrics=lambda told, run: numbers.append((told, run)),
    )
    known = Settings(database=Database(), installation="test", timing=timing)
    with serving(_sound) as port, Worker(known, parts) as worker:
        url = f"http://127.0.0.1:{port}/in?token=recipient-secret"
        seconds = 3.0 * timing.send_timeout_seconds + 2.0
        yield Ground(bench, worker, (*hidden, "recipient-secret"), url, seconds, lines, numbers)


async def _sound(peer: Peer) -> None:
    while True:
        await peer.answer(await peer.request(), 204, b"")
