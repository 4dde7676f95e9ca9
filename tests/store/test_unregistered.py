"""Recipients that are gone: who is told, in which order, and when nobody is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from fencepost.core.asking import after_asking
from fencepost.core.channel import Facility
from fencepost.core.doubt import CloseUnsent
from fencepost.core.exchange import NO_FACTS, Facts, GateWord, Verdict, Word
from fencepost.core.notification import Claimed, Kind, NotificationId
from fencepost.core.outcome import Unregistered
from fencepost.core.transition import Sent, transition
from tests.store.bench import Worker, delivered, uncertain
from tests.store.postgres_bench import PostgresBench
from tests.store.session import Session, session

pytestmark = pytest.mark.postgres

TOLD = "select notification, recipient, gone_at, place from fencepost.unregistered(%s, 1000)"
STATES = "select id, state from fencepost.unregistered_page(null, false, false, 1000) order by id"
SETTLING = 121.0
DAY = 86400.0


def gone(worker: Worker, claimed: Claimed, outcome: Unregistered, facts: Facts = NO_FACTS) -> Word:
    """The word as the worker makes it."""
    (channel,) = (one for one in worker.channels.values() if one.id == claimed.channel)
    sent = Sent(claimed=claimed, channel=channel, facility=Facility(), facts=facts, roll=0.5)
    return transition(sent, outcome).word


def lose(
    bench: PostgresBench, count: int, *, channel: str = "web", guarded: bool = False
) -> list[NotificationId]:
    """So many recipients turn out to be gone."""
    bench.enqueue(count, channel=channel)
    worker = Worker(bench)
    claimed = worker.claim(count, channel=channel)
    assert len(claimed) == count
    outcome = Unregistered("gone", guarded=guarded)
    assert set(worker.settle(*(gone(worker, one, outcome) for one in claimed))) == {Verdict.APPLIED}
    return [one.id for one in claimed]


def deliver(bench: PostgresBench, count: int = 1, *, channel: str = "web") -> None:
    bench.enqueue(count, channel=channel)
    worker = Worker(bench)
    worker.settle(*(delivered(one.held) for one in worker.claim(count, channel=channel)))


def told(bench: PostgresBench, after: int = 0) -> Sequence[tuple[Any, ...]]:
    return bench.rows(TOLD, [after])


def ids(rows: Sequence[tuple[Any, ...]]) -> list[NotificationId]:
    return [row[0] for row in rows]


def states(bench: PostgresBench) -> dict[NotificationId, str]:
    return {row[0]: row[1] for row in bench.rows(STATES)}


def test_a_producer_is_told_who_and_since_when_once_it_has_settled(bench: PostgresBench) -> None:
    bench.enqueue()
    worker = Worker(bench)
    claimed = worker.claim_one()
    word = gone(worker, claimed, Unregistered("answered 410", gone_at=1_700_000_000.25))
    assert worker.settle(word) == [Verdict.APPLIED]
    assert told(bench) == []
    bench.advance(SETTLING)
    ((id, recipient, gone_at, place),) = told(bench)
    assert (id, recipient) == (claimed.id, "recipient 1")
    assert gone_at == datetime.fromtimestamp(1_700_000_000.25, UTC)
    assert told(bench, place) == []
    assert ids(told(bench)) == [claimed.id], "asked again it is told again"


def test_a_word_said_again_and_one_of_a_lost_row_make_one_event_each(bench: PostgresBench) -> None:
    """D1: of [ok, gone, ok] one event. Knowledge of a stale run counts: the provider said it."""
    bench.enqueue(3)
    worker = Worker(bench)
    first, second, third = worker.claim()
    words = (
        delivered(first.held),
        gone(worker, second, Unregistered("gone")),
        delivered(third.held),
    )
    assert worker.settle(*words) == [Verdict.APPLIED] * 3
    assert worker.settle(*words) == [Verdict.REPEATED] * 3
    bench.enqueue()
    stale = Worker(bench)
    lost = stale.claim_one()
    bench.advance(30)
    Worker(bench).claim_one()
    assert stale.settle(gone(stale, lost, Unregistered("gone"))) == [Verdict.LATE]
    bench.advance(SETTLING)
    assert sorted(ids(told(bench))) == [second.id, lost.id]


def test_one_that_the_provider_tells_when_it_is_asked_is_an_event_too(bench: PostgresBench) -> None:
    """And a newer fence that is settled by the same answer is none of its own."""
    bench.enqueue(2)
    worker = Worker(bench)
    worker.settle(*(uncertain(one.held) for one in worker.claim()))
    asked, shadow = worker.claim()
    (channel,) = (one for one in worker.channels.values() if one.id == asked.channel)
    sent = Sent(claimed=asked, channel=channel, facility=Facility(), facts=NO_FACTS, roll=0.5)
    answer = after_asking(sent, Unregistered("status 21610", gone_at=1_700_000_000.0))
    assert isinstance(answer, CloseUnsent)
    silent = Word(id=shadow.id, fence=shadow.fence, kind=Kind.DEAD, reason="unregistered")
    assert worker.settle(answer.word, silent) == [Verdict.APPLIED] * 2
    bench.advance(SETTLING)
    ((id, _, gone_at, _),) = told(bench)
    assert (id, gone_at) == (asked.id, datetime.fromtimestamp(1_700_000_000, UTC))


def test_a_reference_that_says_nothing_or_nonsense_sinks_no_word(bench: PostgresBench) -> None:
    bench.enqueue(3)
    worker = Worker(bench)
    nonsense = ("gone_at=99999999999", "gone_at=-1 guarded", "gone_at='; drop")
    words = [
        Word(
            id=one.id,
            fence=one.fence,
            outcome=word.outcome,
            kind=word.kind,
            reason=word.reason,
            facts=Facts(reference=text),
        )
        for one, text in zip(worker.claim(), nonsense, strict=True)
        for word in (gone(worker, one, Unregistered("gone")),)
    ]
    assert worker.settle(*words) == [Verdict.APPLIED] * 3
    bench.advance(SETTLING)
    assert [row[2] for row in told(bench)] == [None, None]  # and the guarded one waits


def test_a_guarded_answer_waits_for_a_delivery_of_its_channel(bench: PostgresBench) -> None:
    """A wrong environment answers the same way: only a channel that delivers is believed."""
    deliver(bench, channel="post")
    (id,) = lose(bench, 1, guarded=True)
    bench.advance(SETTLING)
    assert told(bench) == []
    assert states(bench) == {id: "waiting"}
    deliver(bench)
    assert ids(told(bench)) == [id]


def test_a_guarded_answer_of_a_channel_that_delivers_nothing_is_withheld(
    bench: PostgresBench,
) -> None:
    deliver(bench)
    bench.advance(DAY)  # what was delivered then says nothing of today
    (id,) = lose(bench, 1, guarded=True)
    bench.advance(DAY + 1)
    assert told(bench) == []
    assert states(bench) == {id: "withheld: guarded"}
    deliver(bench)
    assert told(bench) == []


def test_a_mass_is_told_to_nobody_until_an_operator_has_looked(bench: PostgresBench) -> None:
    """All of 50 tokens answered as gone: a wrong project or environment, and no address is forgotten."""
    deliver(bench, 5)
    lost = lose(bench, 50)
    bench.advance(SETTLING)
    assert told(bench) == []
    assert set(states(bench).values()) == {"withheld: mass"}
    (row,) = bench.rows("select fencepost.unregistered_resolve('web', true, 'ann')")
    assert row == (50,)
    assert ids(told(bench)) == lost
    more = lose(bench, 5)
    bench.advance(SETTLING)
    assert ids(told(bench))[50:] == more, "what was found true does not count against the next ones"


def test_a_mass_found_false_is_forgotten_and_the_attempts_stay(bench: PostgresBench) -> None:
    lost = lose(bench, 20)
    bench.advance(SETTLING)
    assert told(bench) == []
    (row,) = bench.rows("select fencepost.unregistered_resolve('web', false, 'ann')")
    assert row == (20,)
    assert (told(bench), states(bench)) == ([], {})
    assert bench.standing(lost[0]).reason == "unregistered"


def test_many_gone_among_many_more_delivered_are_no_mass(bench: PostgresBench) -> None:
    lost = []
    for _ in range(5):
        lost += lose(bench, 5)
        deliver(bench, 8)
    bench.advance(SETTLING)
    assert sorted(ids(told(bench))) == lost


def test_a_mass_that_comes_a_few_a_run_is_met_whatever_the_channel_delivered_before(
    bench: PostgresBench,
) -> None:
    """A good channel is given a wrong environment: no run sees more than four, and the day was full of deliveries."""
    deliver(bench, 300)
    lost = [lose(bench, 4, guarded=True) for _ in range(8)]
    bench.advance(SETTLING)
    assert told(bench) == []
    assert set(states(bench).values()) == {"withheld: mass"}
    (row,) = bench.rows("select fencepost.unregistered_resolve('web', true, 'ann')")
    assert row == (sum(map(len, lost)),)
    deliver(bench)
    more = lose(bench, 4)
    bench.advance(SETTLING)
    assert ids(told(bench))[-4:] == more, "what was found true does not count against the next ones"


def test_a_run_that_meets_a_mass_withholds_what_its_channel_has_not_told(
    bench: PostgresBench,
) -> None:
    deliver(bench, 100)
    early = lose(bench, 2)
    other = lose(bench, 1, channel="post")
    worker = Worker(bench)
    channel = worker.channels["web"]
    word = GateWord(
        channel=channel.id,
        revision=channel.revision,
        pause_seconds=60.0,
        reason="unregistered: 20 of the last 50",
    )
    worker.say(gates=(word,))
    bench.advance(SETTLING)
    assert ids(told(bench)) == other
    assert {states(bench)[id] for id in early} == {"withheld: mass"}


def test_a_reader_never_passes_one_that_is_told_later(bench: PostgresBench) -> None:
    """Two readers at once, the first one's transaction still open: places are visible in their order."""
    first = lose(bench, 1)
    bench.advance(SETTLING)
    with session(bench.url) as slow, session(bench.url) as quick:
        assert ids(read(slow, 0)) == first
        second = lose(bench, 1)
        bench.advance(SETTLING)
        assert read(quick, 0) == [], "told by the open transaction, or by nobody yet"
        slow.commit()
        quick.commit()
        rows = read(quick, 0)
        quick.commit()
    assert ids(rows) == first + second
    assert [row[3] for row in rows] == sorted(row[3] for row in rows)


def test_a_reader_that_rolls_back_is_told_again_at_later_places(bench: PostgresBench) -> None:
    (id,) = lose(bench, 1)
    bench.advance(SETTLING)
    with session(bench.url) as reader:
        ((_, _, _, place),) = read(reader, 0)
        reader.connection.rollback()
    ((again, _, _, later),) = told(bench, place)
    assert (again, later > place) == (id, True)


def test_an_exchange_that_withholds_waits_for_no_reader(bench: PostgresBench) -> None:
    lose(bench, 1)
    bench.advance(SETTLING)
    worker = Worker(bench)
    channel = worker.channels["web"]
    word = GateWord(
        channel=channel.id, revision=channel.revision, pause_seconds=60.0, reason="unregistered: x"
    )
    with session(bench.url) as reader:
        assert len(read(reader, 0)) == 1
        worker.say(gates=(word,))  # would run into its timeout
        reader.commit()
    assert len(told(bench)) == 1


def test_readers_under_repeatable_read_and_on_a_read_only_connection_are_answered(
    bench: PostgresBench,
) -> None:
    lose(bench, 1)
    bench.advance(SETTLING)
    with session(bench.url) as reader:
        reader.rows("set transaction isolation level repeatable read")
        reader.rows("select 1")  # its snapshot
        assert len(told(bench)) == 1
        assert read(reader, 0) == []
        reader.commit()
        reader.rows("set transaction read only")
        assert len(read(reader, 0)) == 1
        reader.commit()


def test_a_receipt_that_tells_of_it_is_evidence_and_an_event(bench: PostgresBench) -> None:
    bench.enqueue(2)
    worker = Worker(bench)
    doubtful, sent = worker.claim()
    worker.settle(uncertain(doubtful.held), delivered(sent.held))
    call = """
      select fencepost.evidence_unregistered(
        'callback', array[%s, %s, 999]::bigint[], array[%s, 1, 1]::bigint[], array['receipt', null, null],
        array[now(), null, null], array[false, false, false], array['bounced', 'bounced', null])"""
    ((answer,),) = bench.rows(call, [doubtful.id, sent.id, doubtful.fence])
    assert answer == "AAU"
    bench.advance(SETTLING)
    assert ids(told(bench)) == [doubtful.id, sent.id]
    assert not bench.standing(doubtful.id).doubt


def test_events_go_with_the_journal(bench: PostgresBench) -> None:
    lose(bench, 3)
    bench.advance(SETTLING)
    assert len(told(bench)) == 3
    bench.advance(15 * DAY)
    bench.rows("select * from fencepost.prune(1000)")
    assert states(bench) == {}


def read(reader: Session, after: int) -> Sequence[tuple[Any, ...]]:
    return reader.rows(TOLD, [after])
