"""Three runs and two operators on the same rows, in opposed orders, leases running out under them."""

import random
import threading
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field

import psycopg
import pytest

from fencepost.core.exchange import Verdict, Word
from fencepost.core.notification import Held
from tests.store.bench import Worker, dead, delivered, hold, not_sent, release, retry, uncertain
from tests.store.postgres_bench import PostgresBench
from tests.store.session import Session, aside, session

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROWS, ROUNDS, BATCH = 300, 60, 60
MAKERS = [delivered, dead, retry, not_sent, uncertain, hold, release]
EXPIRE = """update fencepost.queue set lease_until = '-infinity' where notification_id = any(array(
              select notification_id from fencepost.queue where run_id <> fencepost.nobody() order by random() limit 40
              for update skip locked))"""
SAY = """select fencepost.evidence('callback', %(ids)s::bigint[], array_fill(null::bigint, array[n]),
           %(outcomes)s::fencepost.outcome[], array_fill(null::text, array[n]), array_fill(null::text, array[n]))
           from cardinality(%(ids)s::bigint[]) n"""
OTHERS = {
    "evidence": SAY,
    "redrive": "select fencepost.redrive(%(ids)s::bigint[], true, 'storm', '')",
    "resolve": "select fencepost.resolve(%(ids)s::bigint[], %(said)s, 'storm', '')",
    "cancel": "select fencepost.cancel(%(ids)s::bigint[], 'storm', '')",
}
AGAINST_EVIDENCE = """
select count(*) from fencepost.evidence e
  left join fencepost.closed c on c.notification_id = e.notification_id
  left join fencepost.queue q on q.notification_id = e.notification_id
 where e.outcome = 'delivered' and c.kind is distinct from 'delivered' and coalesce(q.run_id = fencepost.nobody(), true)
"""
DOUBT_LOST = """select count(*) from fencepost.queue q where not q.doubt and fencepost.doubtful_(q.notification_id)"""


@dataclass
class Storm:
    url: str
    seed: int
    ids: list[int]
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    deadlocks: int = 0
    exchanges: int = 0
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def run(self, worker: Worker, order: str) -> None:
        dice = random.Random(f"{self.seed} {order}")
        held: list[Held] = []
        with session(self.url, autocommit=True) as own:
            own.rows("set deadlock_timeout = '20ms'")
            for _ in range(ROUNDS):
                dice.shuffle(held)
                said, kept = held[:BATCH], held[BATCH:]
                words = [dice.choice(MAKERS)(one) for one in sorted(said, reverse=order == "desc")]
                if order == "any":
                    dice.shuffle(words)
                held = kept + self.exchange(own, worker, words, tuple(kept))
                own.rows(EXPIRE)

    def exchange(
        self, own: Session, worker: Worker, words: list[Word], kept: tuple[Held, ...]
    ) -> list[Held]:
        seq = worker.seq + 1
        for _ in range(20):
            try:
                answer = own.say(worker, *words, renew=kept, claim=worker.want(BATCH), seq=seq)
            except psycopg.errors.DeadlockDetected:
                self.count(deadlock=True)
                continue
            self.count(answer.verdicts)
            return [claimed.held for claimed in answer.claimed]
        raise AssertionError("one exchange met 20 deadlocks in a row")

    def others(self, name: str) -> None:
        dice = random.Random(f"{self.seed} {name}")
        with session(self.url, autocommit=True) as own:
            own.rows("set deadlock_timeout = '20ms'")
            for _ in range(ROUNDS * 2):
                own.rows(EXPIRE)
                ids = dice.sample(self.ids, 10)
                outcomes = [dice.choice(["delivered", "failed", "rejected"]) for _ in ids]
                what = OTHERS[dice.choices(list(OTHERS), [1, 5, 2, 1])[0]]
                try:
                    said = dice.choice(["not_delivered", "dead"])
                    own.rows(what, {"ids": ids, "outcomes": outcomes, "said": said})
                except psycopg.errors.DeadlockDetected:
                    self.count(deadlock=True)

    def count(self, verdicts: tuple[Verdict, ...] = (), deadlock: bool = False) -> None:
        with self.mutex:
            self.exchanges += 1
            self.deadlocks += deadlock
            self.verdicts.update(verdicts)


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_are_conserved_and_deadlocks_are_rare(bench: PostgresBench, seed: int) -> None:
    storm = Storm(bench.url, seed, [int(id) for id in bench.enqueue(ROWS)])
    with aside() as do:
        doing: list[Future[None]] = [
            do(storm.run, Worker(bench), order) for order in ("asc", "desc", "any")
        ]
        doing += [do(storm.others, name) for name in ("Ann", "Bob")]
        for done in doing:
            done.result(120)
    said = f"seed {seed}: {storm.verdicts}, {storm.deadlocks} deadlocks in {storm.exchanges}"
    assert storm.verdicts[Verdict.APPLIED] > 500, said
    assert storm.verdicts[Verdict.LATE] > 50, said  # or they never met
    assert storm.deadlocks <= storm.exchanges // 50, said
    assert bench.conserved(), said
    assert bench.rows(AGAINST_EVIDENCE) == [(0,)], said
    assert bench.rows(DOUBT_LOST) == [(0,)], said
