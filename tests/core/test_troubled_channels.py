"""A run beside providers in trouble: the breaker, the hosts behind one channel, a mass of recipients that are gone."""

import pytest
from msgspec.structs import replace

from fencepost.core.budget import Timing
from fencepost.core.channel import AttemptPolicy
from fencepost.core.exchange import NO_FACTS, Exchange, Facts, GateAnswer
from fencepost.core.fact import GatePaused
from fencepost.core.hosts import PATIENCE_SECONDS
from fencepost.core.notification import ChannelId, Claimed
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase
from fencepost.core.step import Replied, Say, Started
from fencepost.core.tally import Count, Tally
from tests.core.driver import OPEN, Table, settled
from tests.core.rows import KEYED, a_channel, a_claimed

BREAKER = "breaker 1: 8 of the last 8 sends failed"


def rows(first: int, count: int, *, channel: int = 1, recipient: str = "r") -> list[Claimed]:
    return [
        a_claimed(first + n, channel=ChannelId(channel), recipient=recipient) for n in range(count)
    ]


def reply_all(table: Table, claimed: list[Claimed], outcome: Outcome) -> Table:
    for one in claimed:
        table.reply(one.held, outcome, after=0.0001)
    return table


def all_said(table: Table, claimed: list[Claimed], outcome: Outcome) -> list[Exchange]:
    """Each exchange that tells of these ends, however they are grouped; all are answered as the database would."""
    told: list[Exchange] = []
    for one in claimed:
        table.reply(one.held, outcome, after=0.0001)
        if table.of(Say):
            told.append(answered(table))
    while {one.held for one in claimed} - {word.held for said in told for word in said.settle}:
        table.until_said()
        told.append(answered(table))
    return told


def answered(table: Table) -> Exchange:
    said = table.said
    pause = max((word.pause_seconds or 0.0 for word in said.gates), default=0.0)
    table.answer(gate=replace(OPEN, paused_for_seconds=pause) if pause else OPEN, after=0.0001)
    return said


def hosts_apart(*channels: int, slots: int = 20, hard_end: float = 60.0) -> Table:
    """A run whose channels' recipients are names of hosts."""
    made = [a_channel(id, slots=slots) for id in channels]
    table = Table(*made, hard_end=hard_end, start=False)
    facilities = {channel.id: KEYED for channel in made}
    return table.feed(
        Started(tuple(made), facilities, origins={channel.id: str for channel in made})
    )


# --- the breaker


def thawed(seconds: float, facts: Facts = NO_FACTS) -> Table:
    """A run that stood still so long while eight of its sends were in the air; they all came to nothing."""
    table = Table(a_channel(slots=10)).answer(*rows(1, 8))
    for one in rows(1, 8):
        late = Replied(one.held, Uncertain("no answer in time"), facts)
        table.feed(late, after=seconds)
        seconds = 0.0001
    return table


def test_what_ends_after_a_freeze_beyond_the_lease_says_nothing_of_the_provider() -> None:
    table = thawed(Timing().lease_seconds + 1.0)
    assert not [fact for fact in table.facts if isinstance(fact, GatePaused)]
    assert not table.until_said().gates


def test_nor_does_what_ended_long_after_its_timeout_within_the_lease() -> None:
    took = Timing().send_timeout_seconds + 2.0
    assert not thawed(took, Facts(took_ms=round(took * 1000))).until_said().gates


def test_a_provider_that_is_silent_until_the_timeout_is_in_trouble() -> None:
    took = Timing().send_timeout_seconds + 0.5
    (word,) = thawed(took, Facts(took_ms=round(took * 1000))).until_said().gates
    assert word.reason == BREAKER


def test_a_channel_whose_sends_fail_is_paused_for_everybody_and_others_go_on() -> None:
    one, two = a_channel(1, slots=10), a_channel(2)
    table = Table(one, two).answer(*rows(1, 8), *rows(100, 1, channel=2))
    said = reply_all(table, rows(1, 8), Failed("503")).until_said()
    (word,) = said.gates
    assert (word.channel, word.reason, word.revision) == (one.id, BREAKER, 3)
    assert word.pause_seconds == pytest.approx(16.5, abs=0.1)  # half of its jitter
    assert {want.channel for want in said.claim} == {two.id}
    assert [fact.reason for fact in table.facts if isinstance(fact, GatePaused)] == [BREAKER]


def test_after_the_pause_one_probe_goes_and_its_answer_opens_the_channel() -> None:
    table = Table(a_channel(slots=8)).answer(*rows(1, 8))
    reply_all(table, rows(1, 8), NotSent("refused")).until_said()
    table.answer(
        gate=GateAnswer(revision=3, paused_for_seconds=16.5, reason=BREAKER, token_in_seconds=0)
    )
    probing = table.until_said()
    assert table.now > 16.0
    assert [want.limit for want in probing.claim] == [1]
    probe = a_claimed(20)
    said = table.answer(probe).reply(probe.held).until_said()
    assert [want.limit for want in said.claim] == [8]


def test_a_probe_that_fails_opens_the_breaker_for_longer() -> None:
    table = Table(a_channel(slots=8), hard_end=300.0).answer(*rows(1, 8))
    reply_all(table, rows(1, 8), NotSent("refused")).until_said()
    table.answer(
        gate=GateAnswer(revision=3, paused_for_seconds=16.5, reason=BREAKER, token_in_seconds=0)
    )
    table.until_said()
    said = table.answer(a_claimed(20)).reply(a_claimed(20).held, NotSent("refused")).until_said()
    (word,) = said.gates
    assert word.reason == "breaker 2: the probe failed"
    assert word.pause_seconds == pytest.approx(33.0, abs=0.1)


def test_a_run_that_begins_after_a_breakers_pause_begins_with_a_probe() -> None:
    half_open = a_channel(slots=10, pause_reason="breaker 4: the probe failed")
    table = Table(half_open)
    assert [want.limit for want in table.said.claim] == [1]
    said = table.answer(a_claimed(1)).reply(a_claimed(1).held, Failed("503")).until_said()
    assert said.gates[0].reason == "breaker 5: the probe failed"
    other = Table(a_channel(slots=10, pause_reason="throttled"))
    assert [want.limit for want in other.said.claim] == [10]


def test_another_runs_breaker_is_heard_in_mid_run() -> None:
    table = Table(a_channel(slots=10))
    theirs = GateAnswer(
        revision=3, paused_for_seconds=20, reason="breaker 2: the probe failed", token_in_seconds=0
    )
    probing = table.answer(gate=theirs).until_said()
    assert [want.limit for want in probing.claim] == [1]


def test_what_the_run_stopped_itself_says_nothing_of_the_provider() -> None:
    table = Table(a_channel(slots=10)).answer(*rows(1, 8), after=0.001)
    table.until_said()
    table.answer(lost=(), gate=OPEN)
    while not table.cancelled:
        table.wake()
    stopped = table.cancelled
    assert len(stopped) == 8
    for held in stopped:
        table.reply(held, NotSent("stopped"), after=0.0001)
    assert not any(isinstance(fact, GatePaused) for fact in table.facts)


def test_credentials_renewed_under_fifty_sends_are_no_trouble() -> None:
    table = Table(a_channel(slots=10)).answer(*rows(1, 10))
    said = reply_all(table, rows(1, 10), NotSent("a new token", blameless=True)).until_said()
    assert said.gates == ()


# --- hosts


def test_a_dead_host_behind_a_channel_keeps_only_its_own_rows_waiting() -> None:
    dead = rows(1, 5, recipient="dead")
    table = hosts_apart(1).answer(*dead)
    said = reply_all(table, dead, NotSent("connect timeout")).until_said()
    assert said.gates == ()  # the channel itself goes on
    more, alive = rows(10, 1, recipient="dead"), rows(20, 2, recipient="alive")
    table.answer(*more, *alive)
    assert table.sent == [one.held for one in alive]
    words = settled(table.until_said())
    for one in more:
        given_back = words[one.held]
        assert (given_back.outcome, given_back.kind) == (None, None)
        assert given_back.delay_seconds >= 15.0


def test_a_mute_host_leaves_three_quarters_of_the_slots_to_others_after_two_seconds() -> None:
    mute = rows(1, 8, recipient="mute")
    table = hosts_apart(1, slots=8).answer(*mute)
    assert table.sent == [one.held for one in mute[:2]]
    asked = table.until_said()
    given_back = settled(asked)
    assert table.now == pytest.approx(PATIENCE_SECONDS, abs=0.1), "none of the first was answered"
    assert set(given_back) == {one.held for one in mute[2:]}
    assert {(word.outcome, word.kind) for word in given_back.values()} == {(None, None)}
    assert min(word.delay_seconds for word in given_back.values()) >= PATIENCE_SECONDS
    assert [want.limit for want in asked.claim] == [6]
    more, alive = rows(11, 3, recipient="mute"), rows(21, 3, recipient="alive")
    table.answer(*more, *alive)
    assert table.sent == [one.held for one in alive[:2]], "and the third is in line for them"
    assert set(settled(table.until_said())) == {one.held for one in more}


def test_those_in_line_for_a_host_go_with_its_first_answer() -> None:
    first = rows(1, 8, recipient="alive")
    table = hosts_apart(1, slots=8).answer(*first)
    assert table.sent == [one.held for one in first[:2]]
    table.feed(Replied(first[0].held, Delivered(), Facts(phase=Phase.ANSWERED)), after=0.1)
    assert table.sent == [one.held for one in first[2:]]
    assert set(settled(table.until_said())) == {first[0].held}, "nothing was given back"


def test_those_in_line_are_given_back_when_nothing_may_begin_any_more() -> None:
    mute = rows(1, 8, recipient="mute")
    table = hosts_apart(1, slots=8, hard_end=13.5).answer(*mute)
    while not table.of(Say):
        table.wake()
    assert table.now < PATIENCE_SECONDS
    assert {one.held for one in mute[2:]} <= set(settled(table.said))


def test_many_dead_hosts_open_no_breaker_of_their_channel() -> None:
    table = hosts_apart(1).answer(*(rows(n, 1, recipient=f"dead-{n}")[0] for n in range(1, 11)))
    for n in range(1, 11):
        table.reply(a_claimed(n).held, Failed("503"), after=0.0001)
    assert table.until_said().gates == ()


def test_after_its_pause_a_host_gets_one_probe() -> None:
    dead = rows(1, 5, recipient="dead")
    table = hosts_apart(1, hard_end=300.0).answer(*dead)
    reply_all(table, dead, NotSent("connect timeout")).until_said()
    slow = rows(6, 3, recipient="alive")
    table.answer(*slow).reply(slow[0].held, Delivered(), after=17.0).until_said()
    table.answer(*rows(10, 2, recipient="dead"))
    assert table.sent == [a_claimed(10).held]
    assert a_claimed(11).held in settled(table.until_said())


def test_a_host_that_throttles_waits_and_its_neighbours_do_not() -> None:
    (one,) = rows(1, 1, recipient="busy")
    table = hosts_apart(1).answer(one)
    table.reply(one.held, Throttled("429", 30.0, channel_wide=False)).until_said()
    table.answer(*rows(2, 1, recipient="busy"), *rows(3, 1, recipient="free"))
    assert table.sent == [a_claimed(3).held]
    assert settled(table.until_said())[a_claimed(2).held].delay_seconds >= 30.0


def test_a_row_that_expires_is_closed_also_where_its_host_waits() -> None:
    dead = rows(1, 5, recipient="dead")
    table = hosts_apart(1).answer(*dead)
    reply_all(table, dead, NotSent("connect timeout")).until_said()
    late = a_claimed(9, recipient="dead", expires_in_seconds=0.0)
    table.answer(late)
    assert settled(table.until_said())[late.held].reason == "expired"


# --- a mass


def test_a_mass_of_gone_recipients_pauses_the_channel_and_is_an_alarm() -> None:
    table = Table(a_channel(slots=30)).answer(*rows(1, 30))
    told = all_said(table, rows(1, 30), Unregistered("BadDeviceToken", guarded=True))
    (word,) = (word for said in told for word in said.gates)
    assert word.reason == "unregistered: 20 of the last 20 recipients are said to be gone"
    assert word.pause_seconds == pytest.approx(900.0, abs=1)
    after = [said for said in told if said.gates == () and told.index(said) > 1]
    assert [said.claim for said in after] == [()] * len(after)
    tally = Tally()
    for fact in table.facts:
        tally.add(fact)
    assert (tally.counts[Count.UNREGISTERED_MASSES], tally.counts[Count.PAUSES]) == (1, 1)


def test_a_few_gone_recipients_among_many_stop_nothing() -> None:
    table = Table(a_channel(slots=50)).answer(*rows(1, 45))
    all_said(table, rows(1, 30), Delivered())
    told = all_said(table, rows(31, 15), Unregistered("gone"))
    assert [word for said in told for word in said.gates] == []
    assert sum(word.reason == "unregistered" for said in told for word in said.settle) == 15


def test_a_channel_says_how_many_are_too_many() -> None:
    policy = AttemptPolicy(unregistered_max=3)
    table = Table(a_channel(slots=50, policy=policy)).answer(*rows(1, 3))
    assert reply_all(table, rows(1, 3), Unregistered("gone")).until_said().gates != ()


# --- credentials


def test_rows_behind_failed_credentials_go_back_unspent() -> None:
    """The failed one, and those claimed before it was known: no attempt of any of them is burnt."""
    first, *others = rows(1, 5)
    table = Table(a_channel(slots=10)).answer(first, *others)
    said = reply_all(table, [first, *others], CredentialFailure("401")).until_said()
    assert {word.outcome for word in said.settle} == {settled(said)[first.held].outcome}
    assert {str(word.outcome) for word in said.settle} == {"not_sent"}
    assert len(said.gates) == 1
