"""Everything through a pooler that hands out any session for every transaction, and nothing that would need its own."""

import asyncio
import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import fencepost
from fencepost.core import backfill
from fencepost.core.command import CommandId, Enqueue, Label
from fencepost.core.exchange import Exchange, Exchanged, RunStart, Verdict, Want, Word
from fencepost.core.notification import AttemptOutcome, Kind, RunId
from fencepost.core.version import CODE_VERSION
from fencepost.store.backfill import CommandStore
from fencepost.store.migrate import migrate, pending
from fencepost.store.operator import Operator
from fencepost.store.postgres import PostgresStore
from rig.postgres import LocalPostgres, local_postgres
from tests.store.pooler import pooler

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPostgres]:
    """One that writes down every statement."""
    with local_postgres(settings={"log_statement": "all"}) as started:
        yield started


@pytest.fixture
def database(server: LocalPostgres) -> str:
    name = f"pooled_{next(NUMBERS)}"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
    return name


@pytest.fixture(params=[1, 2])
def pooled_url(
    request: pytest.FixtureRequest, server: LocalPostgres, database: str
) -> Iterator[str]:
    """Through a pooler with one or two server sessions."""
    with pooler(server.url, size=request.param) as url:
        yield make_conninfo(url, dbname=database)


def test_migrations_start_twice_at_once(pooled_url: str) -> None:
    together = threading.Barrier(2)

    def one(_: int) -> list[str]:
        with psycopg.connect(pooled_url) as connection:
            together.wait(10)
            return migrate(connection)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    with psycopg.connect(pooled_url) as connection:
        assert len(first) + len(second) == len(set(first) | set(second)) > 0
        assert pending(connection) == []


def test_nothing_of_a_migration_stays_in_the_shared_session(pooled_url: str) -> None:
    with psycopg.connect(pooled_url) as connection:
        migrate(connection)
    with psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None) as next_client:
        for name, value in (("role", "none"), ("lock_timeout", "0"), ("statement_timeout", "0")):
            assert next_client.execute(f"show {name}".encode()).fetchone() == (value,)
        held = "select count(*) from pg_locks where locktype = 'advisory'"
        assert next_client.execute(held).fetchone() == (0,)


def test_runs_side_by_side_deliver_everything_once(pooled_url: str) -> None:
    """Two clients on one or two sessions, many more calls than any driver's threshold for preparing."""
    count = 120
    prepare(pooled_url, count)

    async def both() -> list[list[int]]:
        return list(await asyncio.gather(deliver(pooled_url), deliver(pooled_url)))

    first, second = asyncio.run(both())
    assert sorted(first + second) == list(range(1, count + 1))
    with psycopg.connect(pooled_url, autocommit=True) as connection:
        closed = "select count(*) from fencepost.closed where kind = 'delivered'"
        assert connection.execute(closed).fetchone() == (count,)


def prepare(url: str, count: int) -> None:
    with psycopg.connect(url) as connection:
        migrate(connection)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into fencepost.channel (name, sender, on_uncertain) values ('push', 'webhook', 'hold')"
        )
    with Operator(url) as operator:
        operator.bind("test")
        assert operator.channels()
    with psycopg.connect(url, prepare_threshold=None) as connection:
        for number in range(count):
            fencepost.enqueue(connection, "push", "r", {}, dedupe_key=f"k{number}")
            if number % 10 == 0:
                connection.commit()


async def deliver(url: str, at_once: int = 7) -> list[int]:
    """A whole run, in exchanges of a few rows: claim, renew, settle, claim …, last."""
    store = PostgresStore(url)
    try:
        run = RunId(uuid4())
        assert await store.has_work(())
        start = RunStart(
            run=run,
            installation="test",
            version=CODE_VERSION,
            invocation="i",
            deadline_in_seconds=60,
        )
        [channel] = (await store.start_run(start)).channels
        ids: list[int] = []
        words: tuple[Word, ...] = ()
        for seq in itertools.count(1):
            answer: Exchanged = await store.exchange(
                Exchange(
                    run=run,
                    seq=seq,
                    lease_seconds=20,
                    settle=words,
                    claim=(Want(channel=channel.id, limit=at_once),),
                )
            )
            assert set(answer.verdicts) <= {Verdict.APPLIED}
            if not answer.claimed:
                break
            words = tuple(
                Word(
                    id=row.id,
                    fence=row.fence,
                    outcome=AttemptOutcome.DELIVERED,
                    kind=Kind.DELIVERED,
                )
                for row in answer.claimed
            )
            ids += [row.id for row in answer.claimed]
        await store.exchange(Exchange(run=run, seq=seq + 1, lease_seconds=20, last=True))
        return ids
    finally:
        await store.close()


def test_a_hundred_claims_each_on_one_session(server: LocalPostgres, database: str) -> None:
    """Q32. A driver that prepares by name meets its own names in the other's session."""
    with pooler(server.url, size=1) as pooled:
        url = make_conninfo(pooled, dbname=database)
        prepare(url, 200)

        async def both() -> list[list[int]]:
            return list(await asyncio.gather(deliver(url, 1), deliver(url, 1)))

        first, second = asyncio.run(both())
    assert sorted(first + second) == list(range(1, 201))
    assert min(len(first), len(second)) > 50, "they took turns"


def test_a_producers_rollback_through_the_pooler(pooled_url: str) -> None:
    prepare(pooled_url, 0)
    with psycopg.connect(pooled_url, prepare_threshold=None) as mine:
        fencepost.enqueue(mine, "push", "r", {})
        mine.rollback()
        kept = fencepost.enqueue(mine, "push", "r", {})
        mine.commit()
        assert mine.execute("select id from fencepost.notification").fetchall() == [(kept.id,)]


FORBIDDEN = re.compile(
    r"^(set (?!local\b|transaction\b)|reset |prepare |deallocate |listen |unlisten |notify |discard |load )"
    r"|pg_(try_)?advisory_(un)?lock|create (local |global )?temp|with hold|set_config\([^)]*false\)",
    re.IGNORECASE,
)
SAID = re.compile(
    r"LOG:  (?:statement|execute (?P<name>[^:]+)): (?P<text>.*(?:\n\t.*)*)"
)  # lines of one entry after its first begin with a tab


def test_a_full_life_says_nothing_that_belongs_to_a_session(
    server: LocalPostgres, database: str
) -> None:
    """Such a word would pin a client of RDS Proxy to one session, or surprise the next client of that session."""
    log = server.folder / "postgres.log"
    with statements(log) as said:
        url = make_conninfo(server.url, dbname=database)
        prepare(url, 20)
        assert len(asyncio.run(deliver(url))) == 20
        with Operator(url) as operator:
            operator.status()
            operator.pause("push", reason="test")
            operator.resume("push")
        a_command(url)
    texts = said()
    assert any("fencepost.exchange" in text for _, text in texts)
    assert any("pg_advisory_xact_lock" in text for _, text in texts)
    assert {name for name, _ in texts} <= {None, "<unnamed>"}, "a prepared statement has a name"
    assert [text for _, text in texts if FORBIDDEN.search(text)] == []


def a_command(url: str) -> None:
    """Of a backfill, from its beginning to its end."""
    store = CommandStore(url)
    label = Label(id=CommandId(uuid4()), digest=b"d" * 16)
    turn = store.begin(Enqueue(label=label, rows=())).turn
    row = {"channel": "push", "recipient": "r", "payload": {"title": "t"}}
    assert store.enqueue(turn, [(1, row)], [], {"rows": 1}, last=False).counts["enqueued"] == 1
    assert store.continued(turn, 1)
    assert store.end(turn, backfill.Verdict.DONE, counts={})
    store.close()


@contextlib.contextmanager
def statements(log: Path) -> Iterator[Callable[[], list[tuple[str | None, str]]]]:
    """What was said to the server meanwhile: the name of the prepared statement if any, and the text."""
    start = log.stat().st_size

    def said() -> list[tuple[str | None, str]]:
        with log.open("rb") as file:
            file.seek(start)
            text = file.read().decode(errors="replace")
        return [(one["name"], one["text"].strip()) for one in SAID.finditer(text)]

    yield said
