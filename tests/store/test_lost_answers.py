"""G6: an answer that never arrived is harmless, wherever it was lost."""

import asyncio
from collections.abc import Iterator

import pytest

from fencepost.core.exchange import Exchange, Failure, Verdict, Word
from fencepost.ports import StoreFailed
from fencepost.store.postgres import PostgresStore
from tests.store.bench import LEASE_SECONDS, Worker, delivered, retry, uncertain
from tests.store.postgres_bench import PostgresBench
from tests.store.session import Wire, aside, session, until, until_waiting

pytestmark = pytest.mark.postgres


@pytest.fixture
def wire(bench: PostgresBench) -> Iterator[Wire]:
    """The bench's store speaks through a wire that can lose answers."""
    opened = Wire(bench.url)
    direct, bench.store = bench.store, PostgresStore(opened.url)
    yield opened
    bench.wait(bench.store.close())
    bench.store = direct
    opened.close()


def ledgers(bench: PostgresBench) -> list[tuple[object, ...]]:
    """Everything the words of a run can change."""
    tables = ("queue", "closed", "attempt", "evidence", "run")
    return [
        row
        for table in tables
        for row in bench.rows(f"select x::text from fencepost.{table} x order by 1")
    ]


def exchange(worker: Worker, *settle: Word) -> Exchange:
    worker.seq += 1
    return Exchange(
        run=worker.run,
        seq=worker.seq,
        lease_seconds=LEASE_SECONDS,
        settle=settle,
        claim=worker.want(5),
    )


def test_the_answer_is_lost_after_the_commit(bench: PostgresBench, wire: Wire) -> None:
    bench.enqueue(10)
    worker = Worker(bench)
    one, two, three, *rest = worker.claim(5)
    settle = delivered(one.held), retry(two.held, 60), uncertain(three.held, 60)
    said = exchange(worker, *settle, *(delivered(claimed.held) for claimed in rest))

    async def lose() -> None:
        wire.losing = True
        saying = asyncio.ensure_future(bench.store.exchange(said))
        await asyncio.to_thread(until, lambda: wire.lost > 0, "the server answers")
        wire.cut()
        await saying

    with pytest.raises(StoreFailed) as lost:
        bench.wait(lose())
    assert lost.value.failure is Failure.UNKNOWN
    turn = "select max(seq) from fencepost.journal where run_id = %s and claimed is not null"
    assert bench.rows(turn, [worker.run]) == [(said.seq,)]
    before = ledgers(bench)
    again = bench.wait(bench.store.exchange(said))
    assert again.verdicts == (Verdict.REPEATED,) * 5
    assert len(again.claimed) == 5
    assert {claimed.fence for claimed in again.claimed} == {1}
    assert ledgers(bench) == before


@pytest.mark.parametrize("killed", [True, False])
def test_the_same_words_while_the_first_call_still_runs(bench: PostgresBench, killed: bool) -> None:
    bench.enqueue(10)
    worker = Worker(bench)
    words = [delivered(claimed.held) for claimed in worker.claim(5)]
    seq = worker.seq + 1
    with session(bench.url) as gate, session(bench.url, autocommit=True) as first, aside() as do:
        gate.rows(
            "select 1 from fencepost.queue where notification_id = %s for update", [words[0].id]
        )
        lost = do(first.say, worker, *words, claim=worker.want(5), seq=seq)
        until_waiting(bench.admin, first.pid)
        with session(bench.url, autocommit=True) as second:
            answer = do(second.say, worker, *words, claim=worker.want(5), seq=seq)
            until_waiting(bench.admin, second.pid)
            if killed:
                bench.rows("select pg_terminate_backend(%s)", [first.pid])
            gate.commit()
            again = answer.result(120)
        assert (lost.exception(120) is None) is not killed
    expected = Verdict.APPLIED if killed else Verdict.REPEATED
    assert again.verdicts == (expected,) * 5
    assert len(again.claimed) == 5
    assert bench.rows("select max(fence), count(*) from fencepost.queue") == [(1, 5)]
    assert bench.rows("select count(*) from fencepost.closed") == [(5,)]
    assert bench.conserved()
    assert worker.say(claim=worker.want(9), seq=seq + 1).claimed == ()


def test_an_answer_that_does_not_come_is_given_up(bench: PostgresBench) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    said = exchange(worker, delivered(worker.claim_one().held))
    store = PostgresStore(bench.url, exchange_timeout_seconds=0.2)
    with session(bench.url) as gate:
        gate.rows("select 1 from fencepost.run where id = %s for update", [worker.run])
        with pytest.raises(StoreFailed, match="no answer within") as silent:
            bench.wait(store.exchange(said))
        assert silent.value.failure is Failure.UNKNOWN
    bench.wait(store.close())
    answer = bench.wait(bench.store.exchange(said))
    assert answer.verdicts[0] in (Verdict.APPLIED, Verdict.REPEATED)
    assert bench.standing(id).kind == "delivered"


def test_a_cancelled_call_leaves_a_store_that_dials_anew(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)

    async def cancelled() -> None:
        saying = asyncio.ensure_future(bench.store.exchange(exchange(worker)))
        waiting = (
            b"select count(*) from pg_stat_activity"
            b" where wait_event_type = 'Lock' and datname = current_database()"
        )
        await asyncio.to_thread(
            until, lambda: bench.admin.execute(waiting).fetchone() == (1,), "the call waits"
        )
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(saying, 60)

    with session(bench.url) as gate:
        gate.rows("select 1 from fencepost.run where id = %s for update", [worker.run])
        bench.wait(cancelled())
        assert bench.wait(bench.store.has_work())
