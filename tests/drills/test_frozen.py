"""A sandbox that stops and goes on: in mid-run past its lease, and between two invocations."""

from collections.abc import Mapping
from concurrent.futures import Future
from uuid import UUID

from rig.ground import state_of, wait_until
from rig.invoked import Invoked
from rig.runtimes import Runtime
from tests.drills.ground import ANSWER_SECONDS, Ground, event

SLOTS = 4
STATE = """
select notification_id, kind::text, fence, run_id, closed_at, reason from fencepost.closed order by 1"""
LATE = "select fence, outcome::text, run_id from fencepost.evidence where source = 'late'"
HOLDING = """
select notification_id, fence, run_id, claimed_at, lease_until, attempts, doubt from fencepost.queue order by 1"""
EXPIRED = "select count(*) from fencepost.queue where lease_until < clock_timestamp() and fence = 1"
KILL_BACKENDS = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()"""
PATIENT = {"FENCEPOST_SEND_TIMEOUT_SECONDS": "30", "FENCEPOST_LEASE_SECONDS": "40"}
# So long a linger that a run can be stopped between the reply it read and the word it says of it.
LINGERING = {
    "FENCEPOST_LINGER_SECONDS": "3",
    "FENCEPOST_SETTLE_RESERVE_SECONDS": "4",
    "FENCEPOST_LEASE_SECONDS": "7.5",
}


def test_a_run_thawed_after_its_lease_knows_nothing_and_changes_nothing(ground: Ground) -> None:
    """Frozen in mid-send; another run delivers; the first one's sends end as uncertain: late."""
    ground.channel(slots=SLOTS)
    first, frozen = frozen_in_mid_send(ground, door="dedupes")
    ground.run_until(ground.closed, ground.runtime())
    before = ground.rows(STATE)
    assert [(kind, fence) for _, kind, fence, *_ in before] == [("delivered", 2)] * SLOTS
    summary = thawed(first, frozen)
    assert (summary["late"], summary["conflicts"], summary["delivered"]) == (SLOTS, 0, 0)
    assert ground.rows(STATE) == before, "the second's state is untouched"
    count = ground.provider.count()
    assert (count.arrivals, count.effects, count.duplicate_effects) == (2 * SLOTS, SLOTS, 0)
    ground.assert_conserved()


def test_a_late_word_leaves_a_row_alone_that_another_run_holds(ground: Ground) -> None:
    """Both are in mid-send at one time; the first one thaws and speaks before the second has said a word."""
    ground.channel(slots=SLOTS)
    first, frozen = frozen_in_mid_send(ground, door="dedupes", times=2)
    wait_until(lambda: ground.number(EXPIRED) == SLOTS, 10, "the end of its lease")
    second = ground.invoke(ground.runtime(PATIENT), "second")
    wait_until(lambda: ground.provider.count().arrivals == 2 * SLOTS, 10, "the second in mid-send")
    before = ground.rows(HOLDING)
    assert [(fence, run) for _, fence, run, *_ in before] == [(2, run_of(ground, "second"))] * SLOTS
    summary = thawed(first, frozen)
    assert (summary["late"], summary["delivered"]) == (SLOTS, 0)
    assert ground.rows(HOLDING) == before, "the second's hold is untouched"
    ground.provider.open_gate()
    delivered = second.result(ANSWER_SECONDS).summary
    assert delivered is not None
    assert (delivered["delivered"], delivered["late"]) == (SLOTS, 0)
    ground.assert_conserved()


def test_a_second_delivery_is_a_conflict_that_changes_nothing(ground: Ground) -> None:
    """Frozen between the reply and the word of it; another run delivers too; then the word comes."""
    ground.channel(slots=SLOTS)
    first, frozen = frozen_before_its_word(ground, door="dedupes")
    ground.run_until(ground.closed, ground.runtime())
    before = ground.rows(STATE)
    assert [(kind, fence) for _, kind, fence, *_ in before] == [("delivered", 2)] * SLOTS
    summary = thawed(first, frozen)
    assert (summary["late"], summary["conflicts"], summary["delivered"]) == (0, SLOTS, 0)
    assert ground.rows(STATE) == before, "the second's state is untouched"
    assert ground.rows(LATE) == [(1, "delivered", run_of(ground, "frozen"))] * SLOTS
    count = ground.provider.count()
    assert (count.arrivals, count.effects, count.duplicate_effects) == (2 * SLOTS, SLOTS, 0)
    ground.assert_conserved()


def test_a_late_word_of_delivery_clears_what_was_held(ground: Ground) -> None:
    ground.channel(slots=SLOTS, on_uncertain="hold")
    first, frozen = frozen_before_its_word(ground, door="plain")
    ground.run_until(ground.closed, ground.runtime())
    assert [kind for _, kind, *_ in ground.rows(STATE)] == ["uncertain"] * SLOTS
    assert thawed(first, frozen)["late"] == SLOTS
    assert [kind for _, kind, *_ in ground.rows(STATE)] == ["delivered"] * SLOTS
    count = ground.provider.count()
    assert (count.arrivals, count.effects, count.plain_sent_again) == (SLOTS, SLOTS, 0)
    ground.assert_conserved()


def test_connections_that_died_in_a_freeze_cost_no_attempt(ground: Ground) -> None:
    """Both sides hang up while the sandbox cannot see it."""
    ground.channel(slots=SLOTS)
    ground.enqueue(SLOTS)
    runtime = ground.runtime()
    assert runtime.invoke(event("warm")).summary
    pid = runtime.freeze()
    assert ground.number(KILL_BACKENDS) == 1, "no database connection was there to die"
    assert ground.provider.close_idle() > 0, "no connection to the provider was there to die"
    ground.enqueue(SLOTS)
    runtime.thaw()
    after = runtime.invoke(event("thawed")).summary
    assert after is not None
    assert runtime.pid() == pid, "the same sandbox"
    assert (after["delivered"], after["retried"], after["doubt"]) == (SLOTS, 0, 0)
    assert ground.rows("select distinct attempts from fencepost.closed") == [(1,)]
    assert ground.number("select count(*) from fencepost.attempt") == 0


def frozen_in_mid_send(
    ground: Ground, *, door: str, times: int = 1, environment: Mapping[str, str] = {}
) -> "tuple[Runtime, Future[Invoked]]":
    sent = ground.enqueue(SLOTS, "gate", times=times, door=door)
    first = ground.runtime(environment)
    invoked = ground.invoke(first, "frozen")
    wait_until(lambda: ground.arrived(sent) == SLOTS, 10, "a run in mid-send")
    first.freeze()
    return first, invoked


def frozen_before_its_word(ground: Ground, *, door: str) -> "tuple[Runtime, Future[Invoked]]":
    first, invoked = frozen_in_mid_send(ground, door=door, environment=LINGERING)
    first.thaw()
    assert ground.provider.open_gate() == SLOTS
    pid = first.pid()
    assert pid is not None
    wait_until(lambda: state_of(pid) == "S", 5, "the run to have read its replies")
    first.freeze()
    assert ground.number("select count(*) from fencepost.closed") == 0, "it has said its word"
    return first, invoked


def thawed(runtime: Runtime, frozen: "Future[Invoked]") -> Mapping[str, int]:
    runtime.thaw()
    summary = frozen.result(ANSWER_SECONDS).summary
    assert summary is not None, frozen.result()
    return summary


def run_of(ground: Ground, invocation: str) -> UUID:
    query = "select id from fencepost.run where invocation = %(invocation)s"
    ((run,),) = ground.rows(query, {"invocation": invocation})
    assert isinstance(run, UUID)
    return run
