"""The circuit breaker, the hosts, and a mass of recipients that are gone: pure decisions over outcomes."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.core.breaker import CHANNEL, HOST, OPEN_MAX_SECONDS, Breaker, is_silent
from fencepost.core.gone import Mass
from fencepost.core.hosts import HOSTS_MAX, PATIENCE_SECONDS, THROTTLE_SECONDS, Hosts
from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    NotSent,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Phase

GOOD, BAD, SILENT = Delivered(), Failed("503"), NotSent("connect")
TROUBLES = [NotSent("dns"), Failed("503"), Uncertain("timeout")]
ANSWERS = [Delivered(), Rejected("400"), Unregistered("410")]
NO_NEWS = [Throttled("429"), CredentialFailure("401"), NotSent("new token", blameless=True)]


def hear(breaker: Breaker, outcomes: Iterable[Outcome], now: float = 0.0) -> list[str]:
    return [why for one in outcomes if (why := breaker.hear(one, now, 0.0)) is not None]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_it_opens_when_most_of_the_last_sends_failed(trouble: Outcome) -> None:
    breaker = Breaker(CHANNEL)
    assert hear(breaker, [trouble] * 7) == []
    assert breaker.closed
    assert hear(breaker, [trouble]) == ["breaker 1: 8 of the last 8 sends failed"]
    assert (breaker.closed, breaker.open_until) == (False, 15.0)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_provider_that_answers_is_not_in_trouble(answer: Outcome) -> None:
    """Three in four must fail; a refusal for good is an answer."""
    breaker = Breaker(CHANNEL)
    assert hear(breaker, [BAD, answer] * 20) == []
    assert hear(breaker, [BAD] * 20) != []


@pytest.mark.parametrize("nothing", NO_NEWS)
def test_what_has_a_pause_of_its_own_counts_neither_way(nothing: Outcome) -> None:
    breaker = Breaker(CHANNEL)
    assert hear(breaker, [nothing] * 100) == []
    assert hear(breaker, [BAD] * 7 + [nothing] * 9 + [BAD]) != []


def test_half_open_one_probe_decides_and_openings_in_a_row_grow() -> None:
    breaker, now, lasted = Breaker(CHANNEL), 0.0, []
    hear(breaker, [BAD] * 8)
    for _ in range(9):
        lasted.append(breaker.open_until - now)
        now = breaker.open_until
        assert not breaker.closed
        assert len(hear(breaker, [BAD], now)) == 1
    assert lasted[:4] == [15.0, 30.0, 60.0, 120.0]
    assert lasted[-1] == OPEN_MAX_SECONDS
    now = breaker.open_until
    hear(breaker, [GOOD], now)
    assert breaker.closed
    assert hear(breaker, [BAD] * 8, now) == ["breaker 1: 7 of the last 8 sends failed"]


def test_what_was_in_the_air_when_it_opened_neither_closes_nor_raises_it() -> None:
    breaker = Breaker(CHANNEL)
    hear(breaker, [BAD] * 8)
    assert hear(breaker, [BAD] * 40 + [GOOD], 10.0) == []
    assert (breaker.closed, breaker.open_until) == (False, 15.0)


def test_another_run_goes_on_where_the_one_before_stopped() -> None:
    breaker = Breaker(CHANNEL)
    breaker.told("breaker 3: the probe failed", 5.0)
    assert not breaker.closed
    assert hear(breaker, [BAD], 5.0) == ["breaker 4: the probe failed"]
    fresh = Breaker(CHANNEL)
    for reason in (None, "", "throttled", "breaker x: ", "an operator's breaker 3: "):
        fresh.told(reason, 5.0)
    assert fresh.closed


@given(st.lists(st.sampled_from([*TROUBLES, *ANSWERS, *NO_NEWS]), max_size=200), st.floats(0, 1))
def test_it_never_opens_for_longer_than_it_may_and_never_without_a_failure(
    outcomes: list[Outcome], roll: float
) -> None:
    breaker, now = Breaker(CHANNEL), 0.0
    for outcome in outcomes:
        why = breaker.hear(outcome, now, roll)
        assert why is None or outcome in TROUBLES
        assert breaker.open_until - now <= OPEN_MAX_SECONDS * 1.2
        now += 7.0


# --- hosts


def hosts() -> Hosts:
    return Hosts(lambda recipient: recipient.partition("/")[0] or None, 8)


def told(some: Hosts, recipient: str, *outcomes: Outcome, now: float = 0.0) -> None:
    for outcome in outcomes:
        some.hear(recipient, outcome, now, retry_after_max=60.0, roll=0.0)


def test_a_dead_host_keeps_only_its_own_waiting() -> None:
    some = hosts()
    told(some, "dead/a", *[SILENT] * (HOST.least - 1))
    assert some.wait_seconds("dead/a", 0.0) == 0.0
    told(some, "dead/b", Uncertain("timeout"))
    assert some.wait_seconds("dead/c", 0.0) == 15.0
    assert some.wait_seconds("alive/a", 0.0) == 0.0


def test_after_its_pause_one_probe_goes_and_the_next_wait_for_it() -> None:
    some = hosts()
    told(some, "dead/a", *[SILENT] * HOST.least)
    assert some.wait_seconds("dead/a", 15.0) == 0.0
    some.began("dead/a", 15.0, 10.0)
    assert some.wait_seconds("dead/b", 16.0) == 9.0
    some.ended("dead/a", Phase.NOT_SENT)
    told(some, "dead/a", SILENT, now=17.0)
    assert some.wait_seconds("dead/b", 17.0) == 30.0
    some.began("dead/b", 47.0, 10.0)
    some.ended("dead/b", Phase.ANSWERED)
    told(some, "dead/b", GOOD, now=48.0)
    assert (some.wait_seconds("dead/a", 48.0), len(some)) == (0.0, 0)


def test_a_throttling_host_waits_as_long_as_it_said_and_no_longer_than_allowed() -> None:
    some = hosts()
    told(some, "a/1", Throttled("429", 30.0, channel_wide=False))
    told(some, "b/1", Throttled("429", None, channel_wide=False))
    told(some, "c/1", Throttled("429", 1e9, channel_wide=False))
    waits = [some.wait_seconds(f"{name}/2", 0.0) for name in "abcd"]
    assert waits == [30.0, THROTTLE_SECONDS, 60.0, 0.0]


def test_hosts_in_trouble_are_remembered_up_to_a_bound() -> None:
    some = hosts()
    for number in range(HOSTS_MAX + 5):
        told(some, f"host{number}/", *[SILENT] * HOST.least)
    assert len(some) == HOSTS_MAX
    assert some.wait_seconds("host0/", 0.0) == 0.0
    assert some.wait_seconds(f"host{HOSTS_MAX}/", 0.0) > 0.0


def test_recipients_that_name_no_host_are_nobodys_trouble() -> None:
    some = hosts()
    told(some, "", *[SILENT] * HOST.least)
    assert (some.wait_seconds("", 0.0), len(some)) == (0.0, 0)
    none = Hosts(None, 8)
    told(none, "dead/a", *[SILENT] * HOST.least)
    assert (none.apart, none.wait_seconds("dead/a", 0.0)) == (False, 0.0)


def test_five_silences_of_a_host_in_a_row_are_enough_and_an_answer_between_is_not() -> None:
    breaker = Breaker(HOST, is_silent)
    few = [SILENT] * (HOST.least - 1)
    assert hear(breaker, [*few, GOOD, *few]) == []
    assert hear(breaker, [SILENT]) != []


def test_a_host_that_answers_with_trouble_keeps_nobody_waiting() -> None:
    """Its rows back off by themselves; a pause of all would outlast the trouble of a few."""
    some = hosts()
    told(some, "ill/a", *[Failed("503")] * 40)
    assert (some.wait_seconds("ill/b", 0.0), len(some)) == (0.0, 0)


def begin(some: Hosts, recipient: str, count: int, now: float = 0.0) -> None:
    for _ in range(count):
        some.began(recipient, now, 10.0)


def test_a_host_that_has_not_answered_gets_a_quarter_of_the_slots_and_then_all() -> None:
    some = hosts()
    begin(some, "mute/a", 1)
    assert some.in_line_until("mute/b") is None
    begin(some, "mute/b", 1, now=1.0)
    assert some.in_line_until("mute/c") == PATIENCE_SECONDS, "from the first send on"
    assert some.in_line_until("other/a") is None
    some.ended("mute/a", Phase.ANSWERED)
    begin(some, "mute/c", 7)
    assert some.in_line_until("mute/d") is None


@pytest.mark.parametrize("silence", [Phase.NOT_SENT, Phase.UNCERTAIN])
def test_a_host_that_was_silent_last_has_its_quarter_again_and_no_patience(silence: Phase) -> None:
    some = hosts()
    begin(some, "was/well", 4)
    some.ended("was/well", Phase.ANSWERED)
    some.ended("was/well", silence)
    assert some.in_line_until("was/well") == 0.0
    some.ended("was/well", None)  # what never left says nothing
    assert some.in_line_until("was/well") is None, "and leaves room"


@pytest.mark.parametrize("phase", [*Phase, None])
def test_what_is_known_of_hosts_is_bounded(phase: Phase | None) -> None:
    some = hosts()
    begin(some, "mute/", 2)
    for number in range(3 * HOSTS_MAX):
        begin(some, f"host{number}/", 1)
        some.ended(f"host{number}/", phase)
    assert len(some._answered) + len(some._patient_until) <= HOSTS_MAX + 1
    assert len(some._flying) == 1
    assert some.in_line_until("mute/") == PATIENCE_SECONDS


def test_one_slot_is_given_to_whoever_comes() -> None:
    assert Hosts(str, 1).in_line_until("a") is None


# --- a mass


def test_twenty_of_the_last_fifty_are_a_mass_and_it_is_told_once() -> None:
    mass = Mass(20)
    answers = [GOOD] * 30 + [Unregistered("gone")] * 20
    assert [why for one in answers if (why := mass.hear(one))] == [
        "unregistered: 20 of the last 50 recipients are said to be gone"
    ]
    assert mass.hear(Unregistered("gone")) is None


def test_fewer_are_not_and_what_was_not_answered_for_good_does_not_count() -> None:
    mass = Mass(20)
    for _ in range(20):
        for one in (GOOD, GOOD, Unregistered("gone"), BAD, Throttled("429"), Uncertain("x")):
            assert mass.hear(one) is None


def test_all_of_fifty_said_to_be_gone_are_a_mass_after_twenty() -> None:
    mass = Mass(20)
    told = [mass.hear(Unregistered("BadDeviceToken", guarded=True)) for _ in range(50)]
    assert [number for number, why in enumerate(told, 1) if why] == [20, 40]
