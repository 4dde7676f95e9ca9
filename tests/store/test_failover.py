"""A real failover: a streaming replica behind the name first answers as a reader, then is promoted."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGQUIT

import psycopg
import pytest

from fencepost.core.exchange import Failure
from fencepost.core.tally import Count
from fencepost.store.migrate import migrate
from rig.postgres import LocalPostgres, local_postgres
from tests.store.runs import CHANNEL, ENQUEUE, Ticker, delivered, first_time, in_mid_send
from tests.store.session import Wire, until

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
CAUGHT_UP = (
    "select count(*) > 0 from pg_stat_replication where replay_lsn >= pg_current_wal_insert_lsn()"
)


@contextmanager
def replica_of(primary: LocalPostgres) -> Iterator[LocalPostgres]:
    with tempfile.TemporaryDirectory(prefix="fencepost-replica-") as name:
        folder = Path(name)
        folder.chmod(0o777)  # the copy is made by the server's own user
        replica = LocalPostgres(folder, binaries=primary.binaries)
        program = str(primary.binaries / "pg_basebackup")
        copy = [
            program,
            "-d",
            primary.url,
            "-D",
            str(replica.data),
            "-R",
            "-c",
            "fast",
            "--no-sync",
        ]
        user = replica._user
        groups: list[int] | None = None if user is None else []
        subprocess.run(copy, check=True, cwd="/", user=user, group=user, extra_groups=groups)
        try:
            replica.start()
            yield replica
        finally:
            replica.stop()


class Pair:
    """A primary, its replica, and the name that leads to one of them."""

    def __init__(self, primary: LocalPostgres, replica: LocalPostgres) -> None:
        self.primary, self.replica = primary, replica
        self.name = Wire(primary.url)

    def enqueue(self, count: int) -> None:
        """On the primary; the replica has heard of it when this returns."""
        with psycopg.connect(self.primary.url, autocommit=True) as admin:
            for number in range(count):
                admin.execute(ENQUEUE, [f"k{number}"])
        self.replicated()

    def replicated(self) -> None:
        with psycopg.connect(self.primary.url, autocommit=True) as admin:
            until(lambda: admin.execute(CAUGHT_UP.encode()).fetchone() == (True,), "the replica")

    def fail(self) -> None:
        """The primary is gone, and the name leads to the replica. Nobody has promoted it yet."""
        self.replicated()
        self.primary.stop(SIGQUIT)
        self.name.server = ("127.0.0.1", self.replica.port)

    def promote(self) -> None:
        with psycopg.connect(self.replica.url, autocommit=True) as admin:
            assert admin.execute("select pg_promote(true, 20)").fetchone() == (True,)

    def closed(self) -> list[tuple[object, ...]]:
        with psycopg.connect(self.replica.url) as admin:
            query = "select kind::text, fence, attempts, count(*) from fencepost.closed group by 1, 2, 3"
            return admin.execute(query).fetchall()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with local_postgres() as primary:
        with psycopg.connect(primary.url) as connection:
            migrate(connection)
            connection.execute(CHANNEL)
        with replica_of(primary) as replica:
            opened = Pair(primary, replica)
            yield opened
            opened.name.close()


@pytest.fixture
def ticker(pair: Pair) -> Iterator[Ticker]:
    opened = Ticker()
    opened.on(pair.name.url)
    yield opened
    opened.end()


def test_a_failover_between_two_ticks(pair: Pair, ticker: Ticker) -> None:
    """A tick in the gap claims nothing although it sees that something is due; the next one after it delivers."""
    ticker.tick()
    pair.enqueue(5)
    pair.fail()
    assert ticker.failed_tick().failure is Failure.AWAY
    assert "read-only" in ticker.only_trouble().particulars["detail"]
    assert ticker.sender.begun == []
    pair.promote()
    assert delivered(ticker.tick()) == 5
    assert pair.closed() == [("delivered", 1, 1, 5)]


def test_a_failover_in_mid_run(pair: Pair, ticker: Ticker) -> None:
    """The words for what was being sent find the new writer, which knows of their claims."""

    def over() -> None:
        pair.fail()
        pair.promote()

    ticker.sender.on_send = in_mid_send(first_time(over))
    pair.enqueue(5)
    summary = ticker.tick(20)
    assert (delivered(summary), summary.counts[Count.DOUBT], summary.unsaid) == (5, 0, 0)
    assert {line.action for line in ticker.troubles()} == {"exchange_trouble"}
    assert pair.closed() == [("delivered", 1, 1, 5)]
    assert len(ticker.sender.begun) == 5
