"""A tick on a database that is not as it was ends cleanly: one reconnect, no attempt spent, one clear line."""

import threading
from collections.abc import Iterator
from signal import SIGINT, SIGQUIT
from time import monotonic

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fencepost.core.backfill import Verdict
from fencepost.core.command import Drain
from fencepost.core.exchange import Failure
from fencepost.core.line import Level
from fencepost.core.operation import DatabaseAway
from fencepost.core.tally import Count, Ending
from fencepost.store.backfill import CommandStore
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres
from tests.store.runs import Bench, bench_on, delivered, first_time, in_mid_send
from tests.store.session import Wire, until
from tests.store.test_backfill import label

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
READ_ONLY = "default_transaction_read_only"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with guarded_postgres() as server:
        yield server


@pytest.fixture
def bench(guarded: Guarded) -> Iterator[Bench]:
    with bench_on(guarded) as opened:
        opened.ticker.on(opened.url())
        yield opened
    guarded.password(PASSWORD)
    guarded.setting(READ_ONLY, None)


def test_cold_and_warm_are_one_login(guarded: Guarded, bench: Bench) -> None:
    before = guarded.logins()
    for _ in range(3):
        bench.enqueue(2)
        assert delivered(bench.ticker.tick()) == 2
        assert bench.ticker.troubles() == []
    assert bench.ticker.tick().ended is Ending.IDLE
    assert guarded.logins() == before + 1
    bench.assert_delivered_at_once(6)


def test_thawed_with_a_connection_that_was_ended(guarded: Guarded, bench: Bench) -> None:
    bench.ticker.tick()
    bench.enqueue(3)
    before = guarded.logins()
    assert guarded.end_backends() == 1
    assert delivered(bench.ticker.tick()) == 3
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.INFO, "database_redialled")
    assert line.particulars["reason"] == "the connection had ended while nobody used it"
    assert guarded.logins() == before + 1
    bench.assert_delivered_at_once(3)


def test_a_restart_between_two_ticks(guarded: Guarded, bench: Bench) -> None:
    bench.ticker.tick()
    bench.enqueue(3)
    restart(bench)
    before = guarded.logins()
    assert delivered(bench.ticker.tick()) == 3
    assert bench.ticker.only_trouble().action == "database_redialled"
    assert guarded.logins() == before + 1
    bench.assert_delivered_at_once(3)


def test_while_the_server_is_down_nothing_begins(guarded: Guarded, bench: Bench) -> None:
    bench.ticker.tick()
    bench.enqueue(3)
    guarded.server.stop(SIGINT)
    try:
        assert bench.ticker.failed_tick().failure is Failure.AWAY
    finally:
        guarded.server.start()
        up_again(bench)
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.ERROR, "run_not_started")
    assert "refused" in line.particulars["detail"]
    bench.assert_waiting(3)
    assert delivered(bench.ticker.tick()) == 3
    bench.assert_delivered_at_once(3)


def test_57p01_in_mid_run_is_said_again_on_a_new_connection(guarded: Guarded, bench: Bench) -> None:
    """The session ends while the messages are being sent: what came of them is said on another."""
    once = first_time(lambda: guarded.end_backends())
    bench.ticker.sender.on_send = in_mid_send(once)
    bench.enqueue(4)
    before = guarded.logins()
    assert delivered(bench.ticker.tick()) == 4
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.WARNING, "exchange_trouble")
    assert line.particulars["failure"] == "unknown"
    assert "terminating connection" in line.particulars["detail"]
    assert guarded.logins() == before + 2
    bench.assert_delivered_at_once(4)


@pytest.mark.parametrize("signal", [SIGINT, SIGQUIT])
def test_a_restart_in_mid_run(guarded: Guarded, bench: Bench, signal: int) -> None:
    once = first_time(lambda: restart(bench, crash=signal == SIGQUIT))
    bench.ticker.sender.on_send = in_mid_send(once)
    bench.enqueue(4)
    assert delivered(bench.ticker.tick(12)) == 4
    assert {line.action for line in bench.ticker.troubles()} == {"exchange_trouble"}
    bench.assert_delivered_at_once(4)


def test_a_crash_while_the_server_works_on_an_exchange(guarded: Guarded, bench: Bench) -> None:
    """C7. The exchange waits for a row, the server dies under it; its words are said again after the restart."""
    observer = psycopg.connect(guarded.server.url, autocommit=True)
    waiting = (
        "select count(*) from pg_stat_activity where usename = %s and wait_event_type = 'Lock'"
    )

    def at_work() -> bool:
        return observer.execute(waiting.encode(), [ROLE]).fetchone() == (1,)

    def crash() -> None:
        until(at_work, "the exchange to wait")
        guarded.server.stop(SIGQUIT)
        guarded.server.start()

    accident = threading.Thread(target=crash)

    def hold() -> None:
        bench.admin.execute("begin")
        bench.admin.execute("select from fencepost.run for update")
        accident.start()

    bench.ticker.sender.on_send = in_mid_send(first_time(hold))
    bench.enqueue(4)
    assert delivered(bench.ticker.tick(15)) == 4
    accident.join()
    observer.close()
    up_again(bench)
    assert {line.action for line in bench.ticker.troubles()} == {"exchange_trouble"}
    bench.assert_delivered_at_once(4)


def test_a_node_that_only_reads_begins_nothing_and_is_left(guarded: Guarded, bench: Bench) -> None:
    """25006: after a failover the name may lead to a reader for a while, even over a connection that lived on."""
    bench.ticker.tick()
    bench.enqueue(3)
    guarded.setting(READ_ONLY, "on")
    failed = bench.ticker.failed_tick()
    guarded.setting(READ_ONLY, None)
    assert failed.failure is Failure.AWAY
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.ERROR, "run_not_started")
    assert "read-only" in line.particulars["detail"]
    bench.assert_waiting(3)
    assert delivered(bench.ticker.tick()) == 3
    bench.assert_delivered_at_once(3)


def test_the_next_dial_finds_the_writer(guarded: Guarded, bench: Bench) -> None:
    """Warm on what has become a reader; the name leads to the writer already: one reconnect, inside the tick."""
    bench.ticker.tick()
    bench.enqueue(3)
    before = guarded.logins()
    (reader,) = guarded.backends()
    guarded.setting_of(reader, READ_ONLY, "on")
    assert delivered(bench.ticker.tick()) == 3
    line = bench.ticker.only_trouble()
    assert line.action == "database_redialled"
    assert "read-only" in line.particulars["reason"]
    assert guarded.logins() == before + 1
    assert reader not in guarded.backends()
    bench.assert_delivered_at_once(3)


def test_25006_in_mid_run_is_said_again_to_the_writer(guarded: Guarded, bench: Bench) -> None:
    def demote() -> None:
        (reader,) = guarded.backends()
        guarded.setting_of(reader, READ_ONLY, "on")

    bench.ticker.sender.on_send = in_mid_send(first_time(demote))
    bench.enqueue(4)
    before = guarded.logins()
    assert delivered(bench.ticker.tick()) == 4
    line = bench.ticker.only_trouble()
    assert (line.action, line.particulars["failure"]) == ("exchange_trouble", "away")
    assert guarded.logins() == before + 2
    bench.assert_delivered_at_once(4)


def test_a_silent_wire_ends_the_run_in_time_and_nothing_is_sent_after(
    guarded: Guarded, bench: Bench
) -> None:
    """C6: nothing comes back and nothing says goodbye. What was sent before is in doubt once the lease is over."""
    wire = Wire(bench.url())
    try:
        bench.ticker.on(wire.url)
        bench.ticker.tick()

        def black_hole() -> None:
            wire.silent = True

        bench.ticker.sender.on_send = in_mid_send(first_time(black_hole))
        bench.enqueue(2)
        began = monotonic()
        summary = bench.ticker.tick(6.0)
        assert monotonic() - began < 6.0 * 3, (
            "by its own clock it has 6 s; a busy machine adds to that"
        )
        assert (summary.ended, summary.unsaid) == (Ending.UNSAID, 2)
        assert {line.action for line in bench.ticker.troubles()} == {
            "exchange_trouble",
            "evidence_unsaid",
        }
        assert len(bench.ticker.sender.begun) == 2
        wire.cut()
        bench.assert_held(2)
        parked = bench.ticker.tick().counts[Count.PARKED]
        assert (parked, len(bench.ticker.sender.begun)) == (2, 2), (
            "in doubt, and the policy is hold"
        )
    finally:
        wire.close()


def test_nothing_is_open_while_something_is_sent(guarded: Guarded, bench: Bench) -> None:
    """Q59: idle between the exchanges, never idle in a transaction."""
    states: list[tuple[str, bool]] = []
    query = b"select state, xact_start is not null from pg_stat_activity where pid = any(%s)"

    def look() -> None:
        states.extend(guarded.admin.execute(query, [guarded.backends()]).fetchall())

    bench.ticker.sender.on_send = in_mid_send(look)
    bench.enqueue(20)
    assert delivered(bench.ticker.tick()) == 20
    assert len(states) == 20
    assert not [state for state, in_transaction in states if state.startswith("idle in")]
    bench.assert_delivered_at_once(20)


@pytest.mark.parametrize("value", ["off", "on", "local"])
def test_a_database_that_forgets_what_it_confirmed_is_told_of(
    guarded: Guarded, bench: Bench, value: str
) -> None:
    bench.admin.execute(f"alter database {bench.name} set synchronous_commit = {value}".encode())
    bench.enqueue(1)
    assert delivered(bench.ticker.tick()) == 1
    warned = [line for line in bench.ticker.troubles() if line.action == "database_unsafe"]
    assert [line.level for line in warned] == ([Level.WARNING] if value == "off" else [])
    assert all("synchronous_commit is off" in line.particulars["reason"] for line in warned)


def test_commands_leave_a_server_that_only_reads(guarded: Guarded, bench: Bench) -> None:
    """The connection of a warm backfill sandbox: 25006 is said once, and the next command finds the writer."""
    commands = CommandStore(make_conninfo(guarded.server.url, dbname=bench.name))
    assert commands.bound_to() == "test"
    query = b"select pid from pg_stat_activity where datname = %s and application_name = 'fencepost operator'"
    ((reader,),) = guarded.admin.execute(query, [bench.name]).fetchall()
    guarded.setting_of(reader, READ_ONLY, "on")
    with pytest.raises(DatabaseAway, match="only reads"):
        commands.begin(Drain(label=label(0)))
    guarded.setting(READ_ONLY, None)
    assert commands.begin(Drain(label=label(0))).verdict is Verdict.BEGUN
    commands.close()


def restart(bench: Bench, *, crash: bool = False) -> None:
    bench.guarded.server.stop(SIGQUIT if crash else SIGINT)
    bench.guarded.server.start()
    up_again(bench)


def up_again(bench: Bench) -> None:
    """The test's own connections to a server that was started anew."""
    bench.admin.close()
    bench.guarded.admin.close()
    bench.guarded.connect()
    bench.connect()
