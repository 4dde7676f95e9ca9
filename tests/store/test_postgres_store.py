"""The one boundary where the driver's failures become the store's, and the connection between invocations."""

import socket

import pytest

from fencepost.core.exchange import Facts, Failure
from fencepost.ports import StoreFailed
from fencepost.store.postgres import PostgresStore
from fencepost.store.words import clean
from tests.store.bench import Worker, delivered, release
from tests.store.postgres_bench import PostgresBench
from tests.store.session import session, until

pytestmark = pytest.mark.postgres

RAISING = """create or replace function fencepost.has_work(p_channels text[]) returns boolean language plpgsql as
             $$begin raise exception 'as asked' using errcode = '{}'; end$$"""


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        ("40P01", Failure.RETRY),
        ("40001", Failure.RETRY),
        ("55P03", Failure.RETRY),
        ("57014", Failure.RETRY),
        ("53200", Failure.RETRY),
        ("22003", Failure.DATA),
        ("22P02", Failure.DATA),
        ("23505", Failure.DATA),
        ("54000", Failure.DATA),
        ("42501", Failure.REFUSED),
        ("42883", Failure.REFUSED),
        ("25006", Failure.AWAY),
        ("FP001", Failure.REFUSED),
        ("XX000", Failure.REFUSED),
    ],
)
def test_an_error_says_what_became_of_the_words(
    own_bench: PostgresBench, state: str, failure: Failure
) -> None:
    own_bench.admin.execute(RAISING.format(state).encode())
    with pytest.raises(StoreFailed, match="as asked") as failed:
        own_bench.wait(own_bench.store.has_work())
    assert failed.value.failure is failure


def test_no_server_is_away(bench: PostgresBench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        silent = PostgresStore(
            f"host=127.0.0.1 port={port} user=u dbname=d", connect_timeout_seconds=0.2
        )
        with pytest.raises(StoreFailed) as failed:
            bench.wait(silent.has_work())
        assert failed.value.failure is Failure.AWAY
    refused = PostgresStore(f"host=127.0.0.1 port={port} user=u dbname=d password=hush")
    with pytest.raises(StoreFailed) as failed:
        bench.wait(refused.has_work())
    assert failed.value.failure is Failure.AWAY
    assert "hush" not in failed.value.detail


def backend(bench: PostgresBench) -> int:
    """The pid of the store's own session, when it is idle."""
    query = (
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        " and backend_type = 'client backend' and state = 'idle'"
    )
    ((pid,),) = bench.rows(query)
    return int(pid)


def end(bench: PostgresBench, pid: int) -> None:
    bench.rows("select pg_terminate_backend(%s)", [pid])
    gone = "select count(*) from pg_stat_activity where pid = %s"
    until(lambda: bench.rows(gone, [pid]) == [(0,)], "the backend is gone")


def test_a_connection_that_died_in_its_sleep_is_replaced_at_waking(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    end(bench, backend(bench))
    bench.wait(bench.store.wake())
    assert len(worker.claim()) == 1


def test_a_connection_that_lives_is_kept_at_waking(bench: PostgresBench) -> None:
    bench.wait(bench.store.has_work())
    before = backend(bench)
    bench.wait(bench.store.wake())
    bench.wait(bench.store.has_work())
    assert backend(bench) == before


def test_without_waking_an_exchange_is_unknown_once_and_a_question_is_asked_again(
    bench: PostgresBench,
) -> None:
    bench.enqueue()
    worker = Worker(bench)
    end(bench, backend(bench))
    with pytest.raises(StoreFailed) as failed:
        worker.claim()
    assert failed.value.failure is Failure.UNKNOWN
    assert len(worker.say(claim=worker.want(), seq=worker.seq).claimed) == 1
    end(bench, backend(bench))
    assert not bench.wait(bench.store.has_work())


def test_the_pins_do_not_leak_and_nothing_is_prepared(bench: PostgresBench) -> None:
    worker = Worker(bench)
    with session(bench.url, autocommit=True) as one:
        for _ in range(10):
            one.say(worker, claim=worker.want())
        for pin in ("enable_seqscan", "enable_sort", "enable_hashjoin", "jit"):
            assert one.rows(
                f"select current_setting('{pin}') = reset_val from pg_settings where name = '{pin}'"
            ) == [(True,)]
        assert one.rows("select count(*) from pg_prepared_statements") == [(0,)]


@pytest.mark.parametrize("setting", ["serializable", "repeatable read"])
def test_another_default_isolation_is_refused(own_bench: PostgresBench, setting: str) -> None:
    database = own_bench.admin.info.dbname
    change = f"alter database {database} set default_transaction_isolation = '{setting}'"
    own_bench.admin.execute(change.encode())
    with pytest.raises(StoreFailed, match="default_transaction_isolation") as refused:
        Worker(own_bench)
    assert refused.value.failure is Failure.REFUSED


def test_a_database_bound_to_nobody_is_refused(bench: PostgresBench) -> None:
    bench.rows("delete from fencepost.installation returning 1")
    with pytest.raises(StoreFailed, match="FENCEPOST_INSTALLATION is test: bind it first"):
        Worker(bench)


def test_words_in_any_order_keep_each_its_own_facts(bench: PostgresBench) -> None:
    """A run says them by id, and then they are the plain case; in another order they are none."""
    bench.enqueue(4)
    worker = Worker(bench)
    held = [claimed.held for claimed in worker.claim()]
    words = [
        delivered(one, Facts(took_ms=one.id * 10)) for one in (held[2], held[0], held[3], held[1])
    ]
    worker.settle(*words)
    took = bench.rows("select took_ms / notification_id from fencepost.closed")
    assert took == [(10,)] * 4


def test_a_run_is_counted_when_it_ends_and_idleness_leaves_no_journal(bench: PostgresBench) -> None:
    bench.enqueue(3)
    worker = Worker(bench)
    worker.say(claim=())
    worker.say(claim=worker.want(channel="post"))
    assert bench.rows("select count(*) from fencepost.journal") == [(0,)]
    claimed = worker.claim()
    worker.say(release(claimed[0].held), renew=(claimed[1].held,), last=True)
    ((counts, ended),) = bench.rows("select counts, ended_at is not null from fencepost.run")
    assert ended
    assert (counts["claimed"], counts["applied"], counts["renewed"], counts["late"]) == (3, 1, 1, 0)


def test_operators_words_are_kept(bench: PostgresBench) -> None:
    one, two = bench.enqueue(2)
    bench.cancel(one)
    bench.resolve(two, "delivered")
    words = "select notification_id, what, was, who, why from fencepost.operation order by 1"
    assert bench.rows(words) == [
        (one, "cancel", "waiting", "bench", "test"),
        (two, "resolve", "open, said to be delivered", "bench", "test"),
    ]


def test_clean_text_keeps_what_it_can() -> None:
    assert clean(None) is None
    assert clean("grüße \U0001f600") == "grüße \U0001f600"
    assert clean("a\0b\ud800c") == "a\ufffdb?c"
    assert len(clean("x" * 9999) or "") == 2000


def test_evidence_answers_each_fact(bench: PostgresBench) -> None:
    (id,) = bench.enqueue()
    first = Worker(bench)
    first.claim()
    bench.advance(21)
    second = Worker(bench)
    second.claim()
    say = """select fencepost.evidence('callback', %s::bigint[], %s::bigint[], %s::fencepost.outcome[],
                                       %s::text[], %s::text[])"""
    facts = [
        [id, id, id + 99, id],
        [1, 2, 1, None],
        ["delivered", "delivered", "failed", "uncertain"],
        ["ref"] * 4,
        [None] * 4,
    ]
    assert bench.rows(say, facts) == [("CCU-",)]
    assert bench.rows(say, facts) == [("RRU-",)]
    assert bench.rows("select count(*) from fencepost.evidence where reference = 'ref'") == [(3,)]
