"""Plans made while the tables are empty must still be right when a backlog is there (G9: nothing starves for a plan).

Wall time is not asserted: the server counts the index entries, rows and pages that each call reads.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fencepost.core.notification import Fence, Held, NotificationId
from fencepost.store.migrate import migrate
from rig.postgres import debian_binaries, local_postgres
from tests.store.bench import Worker, dead, delivered, release, retry, uncertain
from tests.store.postgres_bench import PostgresBench
from tests.store.session import Session, session

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

DUE_READ = "select pg_stat_get_xact_tuples_returned('fencepost.queue_due'::regclass)"
OPEN, CLOSED, BATCH = 60_000, 20_000, 50
# Words about what is not there: so every statement meets the empty tables, and keeps the plan that it made for them.
STRANGERS = [Held(NotificationId(10**9 + n), Fence(1 + n % 2)) for n in range(50)]
# (A scan of a whole index for one key returns one entry: only its pages tell.)
READ = """select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid)
                              + pg_stat_get_xact_blocks_fetched(c.oid)), 0)
            from pg_class c where c.relnamespace = 'fencepost'::regnamespace and c.relkind in ('r', 'i')"""
BACKLOG = """
with n as (insert into fencepost.notification (channel, recipient, payload, due_at)
           select 1, 'r', '{}', fencepost.now_() from generate_series(1, %(rows)s) returning id, due_at),
     q as (insert into fencepost.queue (notification_id, channel, priority, due_at)
           select id, 1, 1, due_at from n where id %% 4 > 0)
insert into fencepost.closed (notification_id, closed_at, fence, kind, attempts, outcome, run_id, claimed_at)
select id, due_at, 1, case when id %% 8 = 0 then 'dead' else 'delivered' end::fencepost.kind,
       1, 'failed', gen_random_uuid(), due_at
  from n where id %% 4 = 0
"""
HISTORY = """
insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome)
select id, 7, gen_random_uuid(), due_at, due_at, 'failed' from fencepost.notification where id % 2 = 0;
insert into fencepost.evidence (notification_id, fence, run_id, source, outcome, at)
select id, 7, gen_random_uuid(), 'late', 'failed', due_at from fencepost.notification where id % 2 = 0
"""
CALLS = {
    "evidence": """select fencepost.evidence('callback', %s::bigint[], array_fill(1::bigint, array[50]),
                     array_fill('failed'::fencepost.outcome, array[50]), array_fill(null::text, array[50]),
                     array_fill(null::text, array[50]))""",
    "cancel": "select fencepost.cancel(%s::bigint[], 'plan', '')",
    "redrive": "select fencepost.redrive(%s::bigint[], true, 'plan', '')",
    "resolve": "select fencepost.resolve(%s::bigint[], 'delivered', 'plan', '')",
    "has_work": "select fencepost.has_work('{web}') where %s::bigint[] is not null",
}


@pytest.fixture(params=[15, 0], ids=["PostgreSQL 15", "this PostgreSQL"])
def plan_bench(request: pytest.FixtureRequest, server_url: str) -> Iterator[PostgresBench]:
    """A server with jit as it comes, where nothing is vacuumed or analysed behind our back."""
    binaries = debian_binaries(15) if request.param else None
    if request.param and binaries is None:
        pytest.skip("no PostgreSQL 15 in /usr/lib/postgresql")
    with local_postgres(binaries=binaries, settings={"autovacuum": "off"}) as server:
        with psycopg.connect(server.url) as connection:
            migrate(connection)
        with PostgresBench(server.url) as bench:
            yield bench


class Counted:
    """A session whose calls are each one transaction, with what they read.

    The server's counters of a session run on until it reports them, which it never does within a transaction.
    """

    def __init__(self, own: Session, counter: str = READ) -> None:
        self.own = own
        self.counter = counter
        self.read: dict[str, int] = {}
        self.before = self.count()

    def count(self) -> int:
        ((read,),) = self.own.rows(self.counter)
        return int(read)

    def end(self, what: str) -> int:
        read = self.count() - self.before
        self.own.commit()
        self.read[what] = max(self.read.get(what, 0), read)
        self.before = self.count()
        return read


def every_call(counted: Counted, worker: Worker, parked: list[NotificationId]) -> None:
    """Each kind of word and each function once, with as many rows as an exchange has."""
    own, want = counted.own, worker.want(BATCH)
    held = [claimed.held for claimed in own.say(worker, claim=want).claimed] or STRANGERS
    counted.end("claim")
    own.say(worker, renew=tuple(held))
    counted.end("renew")
    for make in (retry, uncertain, release, dead, delivered):
        answer = own.say(worker, *(make(one) for one in held), claim=want)
        counted.end(f"settle {make.__name__}, claim")
        own.say(worker, *(make(one) for one in held))
        counted.end(f"{make.__name__} again")
        held = [claimed.held for claimed in answer.claimed] or STRANGERS
    own.say(worker, *(retry(one) for one in STRANGERS))
    counted.end("unknown words")
    for name, call in CALLS.items():
        ids = parked if name == "redrive" else [one.id for one in held]
        own.rows(call, [ids])
        counted.end(name)


def test_plans_made_on_empty_tables_read_no_more_than_they_must(plan_bench: PostgresBench) -> None:
    bench = plan_bench
    bench.admin.execute("vacuum analyze")
    with session(bench.url) as own:
        counted = Counted(own)
        for _ in range(7):  # plans are made, and would be changed after the fifth call
            every_call(counted, Worker(bench), [NotificationId(8)])
        bench.admin.execute(BACKLOG.encode(), {"rows": OPEN + CLOSED})
        bench.admin.execute(HISTORY.encode())
        counted.read.clear()
        parked = [NotificationId(8 * n) for n in range(1, BATCH + 1)]
        worker = Worker(bench)
        every_call(counted, worker, parked)
        for what, read in counted.read.items():
            assert read < 150 * BATCH, (
                f"{what} read {read} index entries, rows and pages: {counted.read}"
            )
        maps = Path(f"/proc/{own.pid}/maps")
        if maps.exists():
            assert "llvmjit" not in maps.read_text(errors="replace")
    assert bench.conserved()


def test_a_hint_passes_the_dead_heads_of_the_index(plan_bench: PostgresBench) -> None:
    """Under a snapshot that is held, what was deleted stays in the index until it is let go."""
    bench = plan_bench
    for _ in range(30):
        bench.enqueue(100)
        bench.advance(0.1)
    worker = Worker(bench)
    with session(bench.url) as holder, session(bench.url) as own:
        holder.rows("set transaction isolation level repeatable read")
        holder.rows("select count(*) from fencepost.queue")
        counted = Counted(own, DUE_READ)
        claimed = own.say(worker, claim=worker.want(100)).claimed
        for _ in range(20):
            words = [delivered(one.held) for one in claimed]
            claimed = own.say(worker, *words, claim=worker.want(100)).claimed
            counted.end("drain")
        worker.seq += worker.seq % 20 == 19  # every 20th looks from the beginning
        own.say(worker, claim=worker.want(10))
        hinted = counted.end("hinted")
        own.say(worker, claim=worker.want(10, hint=False))
        unhinted = counted.end("unhinted")
    assert hinted < 300 < 1500 < unhinted
