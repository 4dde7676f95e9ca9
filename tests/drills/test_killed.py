"""A run that dies holding rows: killed by its timeout, or by anything else, wherever it stands."""

import psycopg
import pytest

from rig.ground import wait_until
from tests.drills.ground import ANSWER_SECONDS, LEASE_SECONDS, Ground

SLOTS = 5
IN_DOUBT = """
select n.dedupe_key, extract(epoch from a.at - a.claimed_at)::float8
  from fencepost.attempt a join fencepost.notification n on n.id = a.notification_id where a.taken_over"""


@pytest.mark.parametrize(
    ("on_uncertain", "door", "kinds"),
    [
        ("resend", "dedupes", {"delivered": 25}),
        ("hold", "plain", {"delivered": 20, "uncertain": 5}),
    ],
)
def test_killed_by_its_timeout_in_mid_send(
    ground: Ground, on_uncertain: str, door: str, kinds: dict[str, int]
) -> None:
    """Requests had left and no word was said: the rows come back after one lease, in doubt, and no others."""
    ground.channel(on_uncertain=on_uncertain, slots=SLOTS)
    first = ground.warm(ground.runtime(timeout_seconds=8))
    sent = ground.enqueue(SLOTS, "gate", door=door)
    ground.enqueue(20, "ok", door=door)
    invoked = ground.invoke(first, "killed")
    wait_until(lambda: ground.arrived(sent) == SLOTS, 10, "a run in mid-send")
    first.freeze()  # a run never outstays its time by itself; a stalled sandbox does
    wait_until(lambda: ground.number(OPEN_TRANSACTIONS) == 0, 5, "no transaction during a send")
    assert invoked.result(ANSWER_SECONDS).timed_out
    assert (
        ground.number("select count(*) from fencepost.queue where run_id <> fencepost.nobody()")
        == SLOTS
    )

    ground.run_until(ground.closed, ground.runtime())
    in_doubt = ground.rows(IN_DOUBT)
    assert sorted(subject for subject, _ in in_doubt) == sorted(sent), (
        "what it held, and nothing else"
    )
    assert all(seconds >= LEASE_SECONDS for _, seconds in in_doubt), "not before its lease was over"
    assert (
        dict(ground.rows("select kind::text, count(*) from fencepost.closed group by kind"))
        == kinds
    )
    count = ground.provider.count()
    assert (count.effects, count.duplicate_effects, count.plain_sent_again) == (25, 0, 0)
    assert count.duplicate_arrivals == (SLOTS if on_uncertain == "resend" else 0)
    assert (count.changed_keys, count.changed_bodies) == (0, 0)
    ground.assert_conserved()


def test_killed_in_mid_exchange(ground: Ground) -> None:
    """Its words had reached the server: they count although nobody reads the answer; what it claimed comes back."""
    ground.channel(slots=SLOTS)
    sent = ground.enqueue(SLOTS, "gate")
    rest = ground.enqueue(SLOTS, "ok")
    runtime = ground.runtime()
    invoked = ground.invoke(runtime)
    wait_until(lambda: ground.arrived(sent) == SLOTS, 10, "a run in mid-send")
    with psycopg.connect(ground.url) as blocker:
        blocker.execute("select from fencepost.queue order by notification_id for update")
        ground.provider.open_gate()
        wait_until(lambda: ground.number(WAITING) == 1, 10, "an exchange that waits for a row")
        runtime.kill()
        assert invoked.result(ANSWER_SECONDS).died
    wait_until(lambda: ground.number(BUSY) == 0, 10, "the server to end what it was told")
    settled = ground.number("select count(*) from fencepost.closed where kind = 'delivered'")
    claimed = ground.number(
        "select count(*) from fencepost.queue where run_id <> fencepost.nobody()"
    )
    assert settled >= 1, "no word of the dead run was heard: this drill did not meet its exchange"
    ground.run_until(ground.closed, ground.runtime())
    count = ground.provider.count()
    assert ground.rows(KINDS) == [("delivered", len(sent) + len(rest))]
    assert (count.effects, count.duplicate_effects) == (len(sent) + len(rest), 0)
    assert len(ground.rows(IN_DOUBT)) == claimed, "what it had claimed was taken over, once"
    ground.assert_conserved()


OPEN_TRANSACTIONS = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null"""
KINDS = "select kind::text, count(*) from fencepost.closed group by kind"
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like '%%fencepost.exchange%%'"""
BUSY = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and query like '%%fencepost.exchange%%'"""
