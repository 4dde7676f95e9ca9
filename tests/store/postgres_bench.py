"""The bench around a real PostgreSQL: its clock is `fencepost.now_()`, replaced in the test's own database."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from fencepost.core.notification import AttemptOutcome, Kind, NotificationId, OnUncertain
from fencepost.ports import Store
from fencepost.store.postgres import PostgresStore
from rig.ground import wait_until
from tests.store.bench import Said, Standing, Written

T = TypeVar("T")
NUMBERS = itertools.count()

CLOCK = """
create schema bench;
create table bench.clock as select timestamptz '2030-01-01 00:00:00+00' as now;
grant usage on schema bench to public; grant select on bench.clock to public;
create or replace function fencepost.now_() returns timestamptz language sql stable as 'select now from bench.clock'
"""
CHANNELS = """
insert into fencepost.installation (name) values ('test');
insert into fencepost.channel (name, sender, on_uncertain, rate, burst)
values ('web', 'webhook', 'hold', null, null), ('post', 'webhook', 'hold', null, null),
       ('slow', 'webhook', 'resend', 2, 4)
"""
BUSY = """
select pid from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
   and backend_type = 'client backend' and state <> 'idle'
"""
ENQUEUE = """
with n as (
  insert into fencepost.notification (channel, recipient, payload, priority, due_at, expires_at, on_uncertain)
  select c.id, 'recipient ' || g, %(payload)s, %(priority)s, fencepost.now_() + %(due_in)s * interval '1 s',
         fencepost.now_() + %(expires_in)s * interval '1 s', %(on_uncertain)s
    from generate_series(1, %(count)s) g, fencepost.channel c where c.name = %(channel)s
  returning id, channel, priority, due_at)
insert into fencepost.queue (notification_id, channel, priority, due_at)
select id, channel, priority, due_at from n returning notification_id
"""
STANDING = """
select c.kind, c.reason, coalesce(q.fence, c.fence), coalesce(q.run_id <> fencepost.nobody(), false),
       coalesce(q.attempts, c.attempts), coalesce(q.interruptions, 0), coalesce(q.doubt, false)
  from (select %(id)s::bigint as id) n
  left join fencepost.queue q on q.notification_id = n.id left join fencepost.closed c on c.notification_id = n.id
"""
LEDGER = "select fence, outcome, taken_over from fencepost.attempts where notification_id = %(id)s order by fence"
EVIDENCE = "select distinct fence, outcome from fencepost.evidence where notification_id = %(id)s order by 1, 2"
SAY = """select fencepost.evidence(%(source)s, array[%(id)s]::bigint[], array[%(fence)s]::bigint[],
                                   array[%(outcome)s]::fencepost.outcome[], array[null]::text[], array[null]::text[])"""


@contextlib.contextmanager
def new_database(server_url: str, template: str) -> Iterator[str]:
    """A copy of the template with a bench's name; dropped afterwards."""
    name = f"fencepost_bench_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        create = sql.SQL("create database {} template {}")
        admin.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        yield make_conninfo(server_url, dbname=name)
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


class PostgresBench:
    def __init__(self, url: str) -> None:
        self.url = url
        self.admin = psycopg.connect(url, autocommit=True)
        self.admin.execute(CLOCK)
        self.reset()
        self.runner = asyncio.Runner()
        self.store: Store = PostgresStore(url)

    def reset(self) -> None:
        """An empty database for the next test; the store keeps its connection and its cached plans.

        What a test gave up may still run on the server, and hold what TRUNCATE waits for.
        """
        wait_until(lambda: self.rows(BUSY) == [], 20, "the server to end what it was told")
        tables = "select string_agg('fencepost.' || tablename, ', ') from pg_tables where schemaname = 'fencepost'"
        tables += " and tablename not like 'migration%'"
        ((names,),) = self.rows(tables)
        self.admin.execute(f"truncate {names} restart identity".encode())
        self.admin.execute("update bench.clock set now = '2030-01-01 00:00:00+00'")
        self.admin.execute(CHANNELS)

    def __enter__(self) -> "PostgresBench":
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.store.close())
        self.runner.close()
        self.admin.close()

    def wait(self, answer: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(answer)

    def advance(self, seconds: float) -> None:
        self.admin.execute("update bench.clock set now = now + %s * interval '1 s'", [seconds])

    def enqueue(
        self,
        count: int = 1,
        *,
        channel: str = "web",
        priority: int = 1,
        due_in: float = 0.0,
        expires_in: float | None = None,
        on_uncertain: OnUncertain | None = None,
    ) -> list[NotificationId]:
        words = {
            "count": count,
            "channel": channel,
            "priority": priority,
            "due_in": due_in,
            "expires_in": expires_in,
            "on_uncertain": on_uncertain and on_uncertain.value,
            "payload": Jsonb({"title": "hello"}),
        }
        return [NotificationId(id) for (id,) in self.rows(ENQUEUE, words)]

    def evidence(
        self,
        id: NotificationId,
        outcome: AttemptOutcome,
        *,
        fence: int | None = None,
        source: str = "callback",
    ) -> None:
        self.rows(SAY, {"source": source, "id": id, "fence": fence, "outcome": outcome.value})

    def cancel(self, id: NotificationId) -> str:
        return self.verdict("fencepost.cancel(array[%(id)s]::bigint[], 'bench', 'test')", id)

    def redrive(self, id: NotificationId, *, resend: bool = False) -> str:
        word = sql.Literal(resend).as_string(self.admin)
        call = f"fencepost.redrive(array[%(id)s]::bigint[], {word}, 'bench', 'test')"
        return self.verdict(call, id)

    def resolve(self, id: NotificationId, outcome: str) -> str:
        call = "fencepost.resolve(array[%(id)s]::bigint[], %(outcome)s, 'bench', 'test')"
        return self.verdict(call, id, outcome=outcome)

    def quarantine(self) -> int:
        ((count,),) = self.rows("select fencepost.quarantine('bench', 'test')")
        return int(count)

    def repair(self, channel: str) -> None:
        change = "update fencepost.channel set paused_until = '-infinity', revision = revision + 1"
        self.admin.execute(f"{change} where name = %s".encode(), [channel])

    def standing(self, id: NotificationId) -> Standing:
        ((kind, reason, fence, leased, attempts, interruptions, doubt),) = self.rows(
            STANDING, {"id": id}
        )
        return Standing(
            kind=Kind(kind) if kind else None,
            reason=reason,
            fence=fence,
            leased=leased,
            attempts=attempts,
            interruptions=interruptions,
            doubt=doubt,
            ledger=tuple(
                Written(fence, AttemptOutcome(outcome), taken_over)
                for fence, outcome, taken_over in self.rows(LEDGER, {"id": id})
            ),
            evidence=tuple(
                Said(fence, AttemptOutcome(outcome))
                for fence, outcome in self.rows(EVIDENCE, {"id": id})
            ),
        )

    def conserved(self) -> bool:
        ((holds,),) = self.rows("select holds from fencepost.conservation()")
        return bool(holds)

    def verdict(self, call: str, id: NotificationId, **words: Any) -> str:
        ((verdict,),) = self.rows(f"select verdict from {call}", {"id": id, **words})
        return str(verdict)

    def rows(self, query: str, words: Any = None) -> Sequence[tuple[Any, ...]]:
        return self.admin.execute(query.encode(), words).fetchall()
