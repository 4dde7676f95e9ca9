"""G8 between real sessions with open transactions, in both orders: evidence of delivery is never overtaken."""

from collections.abc import Callable

import pytest

from fencepost.core.exchange import Verdict, Word
from fencepost.core.notification import AttemptOutcome, Held, Kind, NotificationId
from tests.store.bench import Worker, dead, delivered, hold, release, retry, uncertain
from tests.store.postgres_bench import SAY, PostgresBench
from tests.store.session import Session, aside, session, until_waiting

pytestmark = pytest.mark.postgres

Act = Callable[[Session], object]
CANCEL = "select * from fencepost.cancel(array[%s]::bigint[], 'bench', 'test')"
REDRIVE = "select verdict from fencepost.redrive(array[%s]::bigint[], true, 'bench', 'test')"


def evidence(id: NotificationId, outcome: AttemptOutcome = AttemptOutcome.DELIVERED) -> Act:
    words = {"source": "callback", "id": id, "fence": None, "outcome": outcome.value}
    return lambda session: session.rows(SAY, words)


def race(bench: PostgresBench, first: Act, second: Act) -> None:
    """The second waits for the first's open transaction, and goes on when it commits."""
    with session(bench.url) as one, session(bench.url) as two, aside() as do:
        first(one)
        waits = do(second, two)
        until_waiting(bench.admin, two.pid)
        one.commit()
        waits.result(120)
        two.commit()


@pytest.mark.parametrize("evidence_first", [True, False])
@pytest.mark.parametrize("make", [dead, retry, uncertain, release, hold, delivered])
def test_evidence_against_the_holders_word(
    bench: PostgresBench, make: Callable[[Held], Word], evidence_first: bool
) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    word = make(worker.claim_one().held)

    def settle(session: Session) -> None:
        assert session.say(worker, word).verdicts == (Verdict.APPLIED,)

    acts = (evidence(id), settle) if evidence_first else (settle, evidence(id))
    race(bench, *acts)
    assert bench.standing(id).kind is Kind.DELIVERED
    assert bench.conserved()


@pytest.mark.parametrize("evidence_first", [True, False])
@pytest.mark.parametrize("leased", [True, False])
def test_evidence_against_cancel(bench: PostgresBench, leased: bool, evidence_first: bool) -> None:
    (id,) = bench.enqueue()
    if leased:
        Worker(bench).claim_one()

    def cancel(session: Session) -> None:
        session.rows(CANCEL, [id])

    race(bench, *((evidence(id), cancel) if evidence_first else (cancel, evidence(id))))
    assert bench.standing(id).kind is Kind.DELIVERED
    assert bench.conserved()


@pytest.mark.parametrize("evidence_first", [True, False])
def test_evidence_against_redrive(bench: PostgresBench, evidence_first: bool) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    worker.settle(dead(worker.claim_one().held))

    def redrive(session: Session) -> None:
        session.rows(REDRIVE, [id])

    race(bench, *((evidence(id), redrive) if evidence_first else (redrive, evidence(id))))
    assert bench.standing(id).kind is Kind.DELIVERED
    assert bench.conserved()


def test_evidence_against_the_last_words(bench: PostgresBench) -> None:
    (id,) = bench.enqueue()
    worker = Worker(bench)
    worker.claim()
    race(bench, evidence(id), lambda session: session.say(worker, last=True))
    assert bench.standing(id).kind is Kind.DELIVERED


def test_a_claim_waits_for_nobody(bench: PostgresBench) -> None:
    one, two = bench.enqueue(2)
    worker = Worker(bench)
    with session(bench.url) as busy:
        busy.rows("select 1 from fencepost.queue where notification_id = %s for update", [one])
        assert [claimed.id for claimed in worker.claim()] == [two]


def test_two_claims_at_once_share_no_row(bench: PostgresBench) -> None:
    bench.enqueue(20)
    first, second = Worker(bench), Worker(bench)
    with session(bench.url) as one:
        mine = {claimed.id for claimed in one.say(first, claim=first.want(10)).claimed}
        yours = {claimed.id for claimed in second.claim(20)}
        one.commit()
    assert len(mine) == len(yours) == 10
    assert not mine & yours


@pytest.mark.parametrize("word_first", [True, False])
def test_a_takeover_against_the_old_holders_word(bench: PostgresBench, word_first: bool) -> None:
    (id,) = bench.enqueue()
    old, new = Worker(bench), Worker(bench)
    held = old.claim_one().held
    bench.advance(21)
    with session(bench.url) as one, session(bench.url, autocommit=True) as two, aside() as do:
        if word_first:
            one.say(old, retry(held, 60))
            assert two.say(new, claim=new.want()).claimed == ()
            one.commit()
        else:
            assert one.say(new, claim=new.want()).claimed[0].fence == 2
            waits = do(two.say, old, retry(held, 60))
            until_waiting(bench.admin, two.pid)
            one.commit()
            assert waits.result(120).verdicts == (Verdict.LATE,)
    standing = bench.standing(id)
    assert (standing.fence, standing.leased) == ((1, False) if word_first else (2, True))
    assert len(standing.ledger) == 1
