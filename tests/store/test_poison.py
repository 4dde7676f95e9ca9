"""G9: one bad row never stops the rest of its batch."""

import pytest

from fencepost.core.exchange import Facts, Failure, GateWord, Verdict
from fencepost.core.notification import AttemptOutcome, Fence, Kind
from fencepost.ports import StoreFailed
from tests.store.bench import Worker, delivered, release, retry, word
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres

BAD_TEXTS = ["nul \0 byte", "lone \ud800 surrogate", "x" * 100_000, '{"broken', "\\u0000", "%s"]


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_any_text_is_taken(bench: PostgresBench, text: str) -> None:
    bench.enqueue(3)
    worker = Worker(bench)
    facts = Facts(detail=text, reference=text)
    one, two, three = worker.claim()
    closes = word(one.held, AttemptOutcome.REJECTED, Kind.DEAD, reason=text, facts=facts)
    opens = word(two.held, AttemptOutcome.FAILED, delay_seconds=5, reason=text, facts=facts)
    channel = worker.channels["web"]
    pause = GateWord(channel=channel.id, revision=channel.revision, pause_seconds=1.0, reason=text)
    answer = worker.say(closes, opens, delivered(three.held, facts), gates=(pause,))
    assert answer.verdicts == (Verdict.APPLIED,) * 3
    assert bench.rows("select max(length(detail)) <= 2000 from fencepost.attempts") == [(True,)]


def test_a_late_words_bad_text_is_taken_too(bench: PostgresBench) -> None:
    bench.enqueue()
    old = Worker(bench)
    held = old.claim_one().held
    bench.advance(21)
    Worker(bench).claim()
    assert old.settle(retry(held, facts=Facts(detail="\0\ud800"))) == [Verdict.LATE]


def test_odd_numbers_are_bounded(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    facts = Facts(status=70_000, took_ms=2**40)
    assert worker.settle(delivered(worker.claim_one().held, facts)) == [Verdict.APPLIED]
    facts = Facts(status=-1, took_ms=-1)
    bench.enqueue()
    assert worker.settle(retry(worker.claim_one().held, facts=facts)) == [Verdict.APPLIED]


def test_counters_stop_where_they_would_overflow(bench: PostgresBench) -> None:
    bench.enqueue()
    Worker(bench).claim()
    bench.rows("update fencepost.queue set attempts = 32767, interruptions = 32767 returning 1")
    bench.advance(21)
    claimed = Worker(bench).claim_one()
    assert (claimed.attempts, claimed.interruptions) == (32767, 32767)


def test_instants_without_end_sink_no_claim(bench: PostgresBench) -> None:
    bench.enqueue(3)
    worker = Worker(bench)
    bench.rows(
        """update fencepost.notification set due_at = '-infinity', expires_at = 'infinity'
            where id = (select min(id) from fencepost.notification) returning 1"""
    )
    assert len(worker.claim()) == 3


def test_a_number_too_big_fails_its_call_alone(bench: PostgresBench) -> None:
    """Nothing was written and seq has not moved: fewer words may follow under it, the claim included."""
    bench.enqueue(2)
    worker = Worker(bench)
    (held,) = (claimed.held for claimed in worker.claim(1))
    bad = retry(held._replace(fence=Fence(2**63)))
    with pytest.raises(StoreFailed) as refused:
        worker.say(bad, delivered(held), claim=worker.want())
    assert refused.value.failure is Failure.DATA
    assert bench.standing(held.id).leased
    answer = worker.say(delivered(held), claim=worker.want(), seq=worker.seq)
    assert answer.verdicts == (Verdict.APPLIED,)
    assert len(answer.claimed) == 1


def test_a_channel_that_is_not_there_starves_nobody(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    (known,) = worker.want()
    unknown = type(known)(channel=type(known.channel)(9999), limit=5)
    nothing = type(known)(channel=known.channel, limit=-3)
    answer = worker.say(claim=(unknown, nothing, known))
    assert len(answer.claimed) == 1
    assert set(answer.gates) == {known.channel}
    assert worker.settle(release(answer.claimed[0].held)) == [Verdict.APPLIED]


@pytest.mark.parametrize(
    "value", ["1e5000", "-1e5000", "[" * 4000 + "]" * 4000, "9" * 400, "1e-5000"]
)
def test_a_payload_that_cannot_be_read_breaks_no_other_row(
    bench: PostgresBench, value: str
) -> None:
    """Enqueue refuses these; what is in the table already must still not break the claims of its neighbours."""
    first, odd, last = bench.enqueue(3)
    payload = '{"data": {"value": ' + value + "}}"
    bench.rows(
        "update fencepost.notification set payload = %s::text::jsonb where id = %s returning 1",
        (payload, odd),
    )
    rows = {claimed.id: claimed for claimed in Worker(bench).claim()}
    assert [rows[id].payload for id in (first, last)] == [{"title": "hello"}] * 2
    assert rows[odd].payload


def test_a_channels_settings_that_cannot_be_read_stop_no_other_channel(
    bench: PostgresBench,
) -> None:
    bench.enqueue()
    bench.rows(
        """update fencepost.channel set settings = '{"x": 1e5000}', policy = '{"attempts_max": 1e5000}'
            where name = 'post' returning 1"""
    )
    worker = Worker(bench)
    assert worker.channels["post"].policy == worker.channels["web"].policy
    assert len(worker.claim()) == 1


def test_a_row_whose_notification_is_gone_breaks_no_other(bench: PostgresBench) -> None:
    """Put there by hand: nobody can send it, and `conservation()` tells of it."""
    stranger, known = bench.enqueue(2)
    bench.rows("delete from fencepost.notification where id = %s returning 1", (stranger,))
    assert [claimed.id for claimed in Worker(bench).claim()] == [known]
    assert not bench.conserved()
