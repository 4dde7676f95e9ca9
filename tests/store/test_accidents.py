"""A tick on a database that is not as it was ends cleanly: one reconnect, no attempt spent, one clear line."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
from fencepost.ports import StoreFailed
from fencepost.store.backfill import CommandStore
from fencepost.store.statement import connected
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres
from tests.store.runs import Bench, Ticker, bench_on, delivered, first_time, in_mid_send
from tests.store.session import Wire, until
from tests.store.test_backfill import label

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SLOTS = 6  # of the small server, for everybody
STORM = 20  # runs at once
PLACES = 5  # for them: ten, without those of superusers and of this test
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


class Vault:
    """Passwords one after another; the last is given for ever. Counts how often one was read anew."""

    def __init__(self, bench: Bench, *passwords: str) -> None:
        self._bench = bench
        self._passwords = list(passwords)
        self.renewed = 0

    def conninfo(self, *, anew: bool = False) -> str:
        if anew:
            self.renewed += 1
            del self._passwords[:-1]
        return self._bench.url(self._passwords[0])


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


def test_a_rotated_password_is_read_anew_once(guarded: Guarded, bench: Bench) -> None:
    """28P01. The open connection goes on; the next dial shows the old password, hears no, and reads the new one."""
    vault = Vault(bench, PASSWORD, "second-hunter2")
    bench.ticker.on(vault)
    bench.ticker.tick()
    guarded.password("second-hunter2")
    bench.enqueue(2)
    assert delivered(bench.ticker.tick()) == 2
    assert bench.ticker.troubles() == []
    bench.enqueue(2)
    before = guarded.logins()
    guarded.end_backends()
    assert delivered(bench.ticker.tick()) == 2
    line = bench.ticker.only_trouble()
    assert line.action == "database_redialled"
    assert "accepted with credentials read anew" in line.particulars["reason"]
    assert (vault.renewed, guarded.logins()) == (1, before + 1)
    bench.assert_delivered_at_once(4)


def test_a_password_that_stays_wrong_is_tried_twice_and_said_once(
    guarded: Guarded, bench: Bench
) -> None:
    vault = Vault(bench, "old-hunter2", "wrong-hunter2")
    bench.ticker.on(vault)
    bench.enqueue(2)
    refused = "password authentication failed for user"
    before = guarded.log().count(refused)
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.ERROR, "run_not_started")
    assert refused in line.particulars["detail"]
    assert (vault.renewed, guarded.log().count(refused)) == (1, before + 2)
    bench.assert_waiting(2)


def test_a_password_that_is_the_same_when_read_anew_is_not_tried_again(
    guarded: Guarded, bench: Bench
) -> None:
    vault = Vault(bench, "wrong-hunter2")
    bench.ticker.on(vault)
    refused = "password authentication failed for user"
    before = guarded.log().count(refused)
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    assert (vault.renewed, guarded.log().count(refused)) == (1, before + 1)


def test_a_rotated_password_in_mid_run(guarded: Guarded, bench: Bench) -> None:
    def rotate() -> None:
        guarded.password("second-hunter2")
        guarded.end_backends()

    vault = Vault(bench, PASSWORD, "second-hunter2")
    bench.ticker.on(vault)
    bench.ticker.sender.on_send = in_mid_send(first_time(rotate))
    bench.enqueue(4)
    assert delivered(bench.ticker.tick()) == 4
    assert bench.ticker.only_trouble().action == "exchange_trouble"
    assert vault.renewed == 1
    bench.assert_delivered_at_once(4)


def test_a_connection_string_that_cannot_be_read_is_not_quoted(bench: Bench) -> None:
    bench.ticker.on("postgresql://worker:hunter2%zz@db/app")
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    assert "cannot be read" in bench.ticker.only_trouble().particulars["detail"]


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
        assert monotonic() - began < 6.0
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


def test_without_a_free_slot_a_run_backs_off_and_leaves_everything() -> None:
    """C11: more runs at once than the server has room for."""
    slots = {"max_connections": str(SLOTS), "superuser_reserved_connections": "2"}
    with guarded_postgres(settings=slots) as small, bench_on(small) as bench:
        url = bench.url()
        bench.ticker.on(url)
        bench.enqueue(3)
        crowd = []
        for _ in range(SLOTS):
            try:
                crowd.append(psycopg.connect(url))
            except psycopg.OperationalError:
                break
        failed = bench.ticker.failed_tick()
        assert failed.failure is Failure.AWAY
        line = bench.ticker.only_trouble()
        assert (line.level, line.action) == (Level.ERROR, "run_not_started")
        assert "slots" in line.particulars["detail"] or "clients" in line.particulars["detail"]
        bench.assert_waiting(3)
        for one in crowd:
            one.close()
        until(lambda: small.backends() == [], "the crowd has left")
        assert delivered(bench.ticker.tick()) == 3
        bench.assert_delivered_at_once(3)


def test_a_storm_of_runs_on_few_slots_delivers_everything_once() -> None:
    """C11: many runs for few places: some deliver, the others leave, and nothing is lost or sent twice."""
    slots = {"max_connections": "10", "superuser_reserved_connections": "3"}
    with guarded_postgres(settings=slots) as small, bench_on(small) as first:
        url = first.url()
        first.ticker.on(url)
        first.enqueue(60)
        together = threading.Barrier(STORM)
        tickers = [Ticker() for _ in range(STORM)]

        def one(ticker: Ticker) -> int | None:
            ticker.on(url)
            together.wait(20)
            try:
                return delivered(ticker.tick(8.0))
            except StoreFailed as failed:
                assert failed.failure is Failure.AWAY  # noqa: PT017  (in a thread, and not for all)
                return None

        with ThreadPoolExecutor(STORM) as pool:
            came = list(pool.map(one, tickers))
        assert came.count(None) == STORM - PLACES, "warm sandboxes keep their places"
        for ticker in tickers:
            ticker.end()
        until(lambda: small.backends() == [], "all have left")
        while first.rows("select count(*) from fencepost.queue") != [(0,)]:
            first.ticker.tick()
        closed = "select kind::text, max(attempts), count(*) from fencepost.closed group by 1"
        assert first.rows(closed) == [("delivered", 1, 60)]


def restart(bench: Bench, *, crash: bool = False) -> None:
    bench.guarded.server.stop(SIGQUIT if crash else SIGINT)
    up_again(bench)


def up_again(bench: Bench) -> None:
    """Started, and the test's own connections with it."""
    bench.guarded.server.start()
    bench.admin.close()
    bench.guarded.admin.close()
    bench.guarded.connect()
    bench.connect()


def test_an_operators_connection_reads_a_rotated_password_anew_too(
    guarded: Guarded, bench: Bench
) -> None:
    vault = Vault(bench, "old-hunter2", PASSWORD)
    with connected(vault) as connection:
        assert connection.info.user == ROLE
    assert vault.renewed == 1
    vault = Vault(bench, "old-hunter2", "wrong-hunter2")
    refused = "password authentication failed for user"
    before = guarded.log().count(refused)
    with pytest.raises(DatabaseAway, match=refused) as failed:
        connected(vault)
    assert "hunter2" not in str(failed.value)
    assert (vault.renewed, guarded.log().count(refused)) == (1, before + 2)


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
