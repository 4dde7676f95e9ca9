"""Receipts in the database: who is asked about, when, how often; and what an answer changes."""

from collections.abc import Iterator

import psycopg
import pytest

from fencepost.core.exchange import Facts, Word
from fencepost.core.notification import AttemptOutcome, Kind, NotificationId
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reason import RECEIPT_DUE
from fencepost.core.receipt import ReceiptDue, told
from fencepost.store.migrate import migrate
from fencepost.store.postgres import PostgresStore
from fencepost.store.receipts import PostgresReceipts
from rig.postgres import local_postgres
from tests.store.bench import Said, Worker, delivered
from tests.store.postgres_bench import PostgresBench
from tests.store.session import session
from tests.store.test_plans import READ, Counted

pytestmark = pytest.mark.postgres
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def receipts(bench: PostgresBench) -> PostgresReceipts:
    assert isinstance(bench.store, PostgresStore)
    return bench.store.receipts


def take(bench: PostgresBench, *channels: str, limit: int = 100) -> list[ReceiptDue]:
    return sorted(bench.wait(receipts(bench).take(channels, limit)), key=lambda due: due.id)


def tell(bench: PostgresBench, due: ReceiptDue, outcome: Outcome) -> int:
    return bench.wait(receipts(bench).tell([told(due, outcome)]))


def accepted(bench: PostgresBench, count: int = 1, channel: str = "web") -> list[NotificationId]:
    """Notifications that their provider took; its ticket is `T-` and their id."""
    ids = bench.enqueue(count, channel=channel)
    worker = Worker(bench)
    claimed = worker.say(claim=worker.want(count, channel=channel)).claimed
    words = tuple(
        Word(
            id=row.id,
            fence=row.fence,
            outcome=AttemptOutcome.DELIVERED,
            kind=Kind.DELIVERED,
            reason=RECEIPT_DUE,
            facts=Facts(reference=f"T-{row.id}"),
        )
        for row in claimed
    )
    worker.say(*words, last=True)
    return ids


def reason(bench: PostgresBench, id: NotificationId) -> str | None:
    standing = bench.standing(id)
    assert standing.kind is Kind.DELIVERED
    return standing.reason


def test_a_receipt_is_asked_for_a_quarter_of_an_hour_later_and_not_before(
    bench: PostgresBench,
) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE - 1)
    assert take(bench) == []
    bench.advance(1)
    (due,) = take(bench)
    assert (due.id, due.fence, due.reference) == (id, 1, f"T-{id}")
    (channel,) = bench.wait(receipts(bench).channels([due.channel]))
    assert (channel.name, channel.sender, channel.revision) == ("web", "webhook", 1)


def test_what_has_no_receipt_is_never_asked_about(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    (row,) = worker.say(claim=worker.want(1)).claimed
    worker.say(delivered(row.held), last=True)
    bench.advance(HOUR)
    assert take(bench) == []


def test_what_is_not_there_yet_is_asked_about_three_times_and_no_more(
    bench: PostgresBench,
) -> None:
    """D46: a receipt that never comes must not be asked for for ever."""
    (id,) = accepted(bench)
    asked_at = []
    for minute in range(0, 25 * 60, 15):
        if take(bench):
            asked_at.append(minute)
        bench.advance(15 * MINUTE)
    assert asked_at == [15, 120, 22 * 60]
    assert reason(bench, id) == "receipt_missing"
    assert bench.standing(id).evidence == ()


def test_what_is_older_than_a_day_is_given_up_unasked(bench: PostgresBench) -> None:
    """The provider has forgotten it; and old ones must not hold up the new."""
    old = accepted(bench, 5)
    bench.advance(DAY + 1)
    new = accepted(bench)
    bench.advance(15 * MINUTE)
    assert [due.id for due in take(bench, limit=1)] == new
    for _ in range(5):
        take(bench, limit=1)
    assert {reason(bench, id) for id in old} == {"receipt_missing"}


def test_the_oldest_go_first_and_a_page_is_bounded(bench: PostgresBench) -> None:
    first, second = accepted(bench, 3), accepted(bench, 3)
    bench.advance(15 * MINUTE)
    assert [due.id for due in take(bench, limit=4)] == first + second[:1]
    assert [due.id for due in take(bench, limit=4)] == second[1:]
    assert take(bench, limit=4) == []


def test_a_worker_asks_about_its_own_channels_only(bench: PostgresBench) -> None:
    web, post = accepted(bench, 2), accepted(bench, channel="post")
    bench.advance(15 * MINUTE)
    assert [due.id for due in take(bench, "post", limit=1)] == post
    assert [due.id for due in take(bench, "web", "slow")] == web


def test_two_runs_at_once_never_ask_about_the_same(bench: PostgresBench) -> None:
    ids = accepted(bench, 4)
    bench.advance(15 * MINUTE)
    with session(bench.url) as other:
        theirs = other.rows("select id from fencepost.take_receipts('{}', 3)")
        ours = [due.id for due in take(bench)]  # waits for nobody
        other.commit()
    assert sorted([*ours, *(id for (id,) in theirs)]) == ids
    assert take(bench) == []


def test_a_run_that_dies_before_it_asked_loses_one_question(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    assert [due.id for due in take(bench)] == [id]
    assert reason(bench, id) == "receipt_late"  # it is killed here
    bench.advance(2 * HOUR)
    (due,) = take(bench)
    assert tell(bench, due, Delivered("T")) == 1
    assert reason(bench, id) is None


# --- what an answer changes


@pytest.mark.parametrize(
    ("receipt", "code", "evidence"),
    [
        (Delivered("T"), None, (Said(1, AttemptOutcome.DELIVERED),)),
        (Rejected("receipt: x"), "receipt_refused", (Said(1, AttemptOutcome.REJECTED),)),
        (Unregistered("receipt: x"), "receipt_refused", (Said(1, AttemptOutcome.REJECTED),)),
        (Throttled("receipt: x"), "receipt_refused", (Said(1, AttemptOutcome.FAILED),)),
        (Uncertain("receipt: x"), "receipt_unknown", ()),
    ],
)
def test_an_answer_is_evidence_of_the_attempt_and_ends_the_asking(
    bench: PostgresBench, receipt: Outcome, code: str | None, evidence: tuple[Said, ...]
) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    assert tell(bench, due, receipt) == 1
    standing = bench.standing(id)
    assert (standing.kind, standing.reason) == (Kind.DELIVERED, code)
    assert standing.evidence == evidence
    bench.advance(23 * HOUR)
    assert take(bench) == []
    assert bench.rows("select * from fencepost.conflicts()") == []
    ((holds,),) = bench.rows("select holds from fencepost.conservation()")
    assert holds


def test_the_same_answer_twice_and_a_second_one_change_nothing(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    assert tell(bench, due, Delivered("T")) == 1
    assert tell(bench, due, Delivered("T")) == 0
    assert tell(bench, due, Rejected("receipt: late")) == 0
    assert bench.standing(id).evidence == (Said(1, AttemptOutcome.DELIVERED),)


def test_an_answer_that_came_after_it_was_given_up_still_counts(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    bench.advance(DAY)
    assert take(bench) == []
    assert reason(bench, id) == "receipt_missing"
    assert tell(bench, due, Delivered("T")) == 1
    assert reason(bench, id) is None


def test_an_answer_about_another_attempt_or_nobody_is_passed_over(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    for stranger in (
        ReceiptDue(id=id, fence=due.fence + 1, channel=due.channel, reference="T"),  # type: ignore[arg-type]
        ReceiptDue(id=NotificationId(10**9), fence=due.fence, channel=due.channel, reference="T"),
    ):
        assert tell(bench, stranger, Rejected("receipt: x")) == 0
    assert bench.standing(id).evidence == ()
    assert bench.wait(receipts(bench).tell([])) == 0


def test_a_device_that_is_gone_becomes_an_event_for_producers(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    assert tell(bench, due, Unregistered("receipt: DeviceNotRegistered", gone_at=1.5)) == 1
    rows = bench.rows(
        "select notification_id, fence, guarded, date_part('epoch', gone_at), why from fencepost.unregistered"
    )
    assert rows == [(id, 1, False, 1.5, "receipt: DeviceNotRegistered")]


PAUSED = "select name, pause_reason from fencepost.channel where paused_until > fencepost.now_()"
WRONG = CredentialFailure("receipt: InvalidCredentials")


def test_credentials_a_receipt_tells_are_wrong_pause_their_channel(bench: PostgresBench) -> None:
    """As a ticket that says so does: with a reason, and no other channel."""
    (id,) = accepted(bench)
    accepted(bench, channel="post")
    bench.advance(15 * MINUTE)
    for due in take(bench):
        tell(bench, due, WRONG if due.id == id else Delivered())
    assert bench.rows(PAUSED) == [("web", "credentials: receipt: InvalidCredentials")]
    assert reason(bench, id) == "receipt_refused"
    bench.advance(15 * MINUTE)
    assert bench.rows(PAUSED) == []


def test_a_receipt_of_before_an_operators_repair_pauses_nothing(bench: PostgresBench) -> None:
    """It tells of credentials that were wrong then; what is accepted since tells of those that are there now."""
    accepted(bench, 2)
    bench.advance(15 * MINUTE)
    before, late = take(bench)
    tell(bench, before, WRONG)
    bench.rows("select * from fencepost.channel_resume('web')")
    tell(bench, late, WRONG)
    assert bench.rows(PAUSED) == []
    bench.advance(1)
    accepted(bench)
    bench.advance(15 * MINUTE)
    (since,) = take(bench)
    tell(bench, since, WRONG)
    assert len(bench.rows(PAUSED)) == 1


def test_receipts_wait_for_nobody_who_holds_the_channel(bench: PostgresBench) -> None:
    (id,) = accepted(bench)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    with session(bench.url) as other:
        other.rows("select 1 from fencepost.channel for update")
        assert tell(bench, due, WRONG) == 1  # would run into its timeout
        other.connection.rollback()
    assert (bench.rows(PAUSED), reason(bench, id)) == ([], "receipt_refused")


def test_only_the_event_of_the_one_that_is_gone_is_written(bench: PostgresBench) -> None:
    accepted(bench, 3)
    bench.advance(15 * MINUTE)
    one, two, three = take(bench)
    answers = [
        told(one, Delivered("T")),
        told(two, Unregistered("gone", guarded=True)),
        told(three, Uncertain("nobody knows")),
    ]
    assert bench.wait(receipts(bench).tell(answers)) == 3
    rows = bench.rows("select notification_id, guarded, gone_at from fencepost.unregistered")
    assert rows == [(two.id, True, None)]


def test_a_message_that_was_in_doubt_before_it_was_accepted_stays_delivered(
    bench: PostgresBench,
) -> None:
    """A refusing receipt is about the last attempt: it must neither reopen nor kill the notification."""
    (id,) = bench.enqueue()
    worker = Worker(bench)
    worker.say(claim=worker.want(1))
    bench.advance(HOUR)  # it dies; the next takes over, and is accepted
    second = Worker(bench)
    (row,) = second.say(claim=second.want(1)).claimed
    assert row.doubt
    word = Word(
        id=row.id,
        fence=row.fence,
        outcome=AttemptOutcome.DELIVERED,
        kind=Kind.DELIVERED,
        reason=RECEIPT_DUE,
        facts=Facts(reference="T"),
    )
    second.say(word, last=True)
    bench.advance(15 * MINUTE)
    (due,) = take(bench)
    tell(bench, due, Rejected("receipt: MessageTooBig"))
    standing = bench.standing(id)
    assert (standing.kind, standing.reason) == (Kind.DELIVERED, "receipt_refused")


# --- what it costs


def test_a_question_that_finds_nothing_writes_nothing(bench: PostgresBench) -> None:
    """It is asked on every idle tick: no transaction id, no WAL."""
    accepted(bench)
    with session(bench.url) as own:
        assert own.rows("select id from fencepost.take_receipts('{}', 100)") == []
        assert own.rows("select pg_current_xact_id_if_assigned()") == [(None,)]


@pytest.fixture
def plan_bench() -> Iterator[PostgresBench]:
    """A server where nothing is vacuumed or analysed behind our back."""
    with local_postgres(settings={"autovacuum": "off"}) as server:
        with psycopg.connect(server.url) as connection:
            migrate(connection)
        with PostgresBench(server.url) as bench:
            yield bench


CLOSED = """
with n as (insert into fencepost.notification (channel, recipient, payload, due_at)
           select 1, 'r', '{}', fencepost.now_() from generate_series(1, %(rows)s) returning id, due_at)
insert into fencepost.closed
  (notification_id, closed_at, fence, kind, attempts, outcome, run_id, claimed_at, reference, reason)
select id, due_at, 1, 'delivered', 1, 'delivered', gen_random_uuid(), due_at, 'T', %(reason)s from n"""

TAKE = "select id from fencepost.take_receipts('{}', 100)"
TAKEN = "select notification_id from fencepost.closed where reason = 'receipt_late'"
TELL = """
select fencepost.tell_receipts(%s::bigint[], array_fill(1::bigint, array[100]), array_fill('T'::text, array[100]),
         array_fill('delivered'::fencepost.outcome, array[100]), array_fill(null::text, array[100]),
         array_fill(null::text, array[100]), array_fill(false, array[100]), array_fill(null::float8, array[100]),
         array_fill(false, array[100]), array_fill(null::float8, array[100]))"""


@pytest.mark.slow
def test_it_reads_what_it_takes_whatever_else_is_closed(plan_bench: PostgresBench) -> None:
    """An empty probe reads next to nothing; a page reads its page. Plans were made on empty tables."""
    bench = plan_bench
    with session(bench.url) as own:
        counted = Counted(own, READ)
        for _ in range(7):  # plans are made, and would be changed after the fifth call
            own.rows(TAKE)
            own.rows(TELL, [[10**9 + n for n in range(100)]])
            counted.end("empty")
        own.rows(CLOSED, {"rows": 20_000, "reason": None})
        own.commit()
        bench.advance(15 * MINUTE)
        counted.before = counted.count()
        own.rows(TAKE)
        assert counted.end("probe") < 30
        bench.advance(-15 * MINUTE)
        own.rows(CLOSED, {"rows": 20_000, "reason": "receipt_due"})
        own.commit()
        bench.advance(15 * MINUTE)
        counted.before = counted.count()
        own.rows(TAKE)
        taken = [id for (id,) in own.rows(TAKEN)]
        assert len(taken) == 100
        assert counted.end("take") < 100 * 40
        own.rows(TELL, [taken])
        assert counted.end("tell") < 100 * 70
