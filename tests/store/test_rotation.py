"""28P01: a login that is refused is tried once more, if the credentials read anew are others."""

from collections.abc import Iterator

import pytest

from fencepost.core.exchange import Failure
from fencepost.core.line import Level
from fencepost.core.operation import DatabaseAway
from fencepost.store.statement import connected
from tests.store.guarded import PASSWORD, ROLE, Guarded, guarded_postgres
from tests.store.runs import Bench, bench_on, delivered, first_time, in_mid_send

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
REFUSED = "password authentication failed for user"


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
    before = guarded.log().count(REFUSED)
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    line = bench.ticker.only_trouble()
    assert (line.level, line.action) == (Level.ERROR, "run_not_started")
    assert REFUSED in line.particulars["detail"]
    assert (vault.renewed, guarded.log().count(REFUSED)) == (1, before + 2)
    bench.assert_waiting(2)


def test_a_password_that_is_the_same_when_read_anew_is_not_tried_again(
    guarded: Guarded, bench: Bench
) -> None:
    vault = Vault(bench, "wrong-hunter2")
    bench.ticker.on(vault)
    before = guarded.log().count(REFUSED)
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    assert (vault.renewed, guarded.log().count(REFUSED)) == (1, before + 1)


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


def test_an_operators_connection_reads_a_rotated_password_anew_too(
    guarded: Guarded, bench: Bench
) -> None:
    vault = Vault(bench, "old-hunter2", PASSWORD)
    with connected(vault) as connection:
        assert connection.info.user == ROLE
    assert vault.renewed == 1
    vault = Vault(bench, "old-hunter2", "wrong-hunter2")
    before = guarded.log().count(REFUSED)
    with pytest.raises(DatabaseAway, match=REFUSED) as failed:
        connected(vault)
    assert "hunter2" not in str(failed.value)
    assert (vault.renewed, guarded.log().count(REFUSED)) == (1, before + 2)


def test_a_connection_string_that_cannot_be_read_is_not_quoted(bench: Bench) -> None:
    bench.ticker.on("postgresql://worker:hunter2%zz@db/app")
    assert bench.ticker.failed_tick().failure is Failure.REFUSED
    assert "cannot be read" in bench.ticker.only_trouble().particulars["detail"]
