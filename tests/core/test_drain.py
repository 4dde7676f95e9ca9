"""How many runs a run asks for: a table, and what no number can break."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.backfill.commands import read_command
from fencepost.core.command import Drain
from fencepost.core.drain import (
    COUNT_MAX,
    WAVE_SECONDS_MAX,
    Backlog,
    Pulled,
    Reason,
    closed,
    count_limit,
    idle_reason,
    wave,
    wave_seconds,
)
from fencepost.core.message import drain_message
from fencepost.core.tally import Count, Ending, Summary

RUN = Pulled(closed=1000, seconds=48.0)


def summary(ended: Ending, **counts: int) -> Summary:
    told = {count: counts.get(count.value, 0) for count in Count}
    return Summary(run="r", ended=ended, counts=told)


@pytest.mark.parametrize(
    ("due", "more", "oldest", "messages", "reason"),
    [
        (0, False, 0.0, 0, Reason.NOTHING_DUE),
        (1, False, 1.0, 0, Reason.NEXT_TICK),
        (1000, False, 40.0, 0, Reason.NEXT_TICK),
        (1250, False, 40.0, 0, Reason.NEXT_TICK),  # a quarter more is within chance
        (1251, False, 40.0, 1, Reason.BEHIND),
        (2000, False, 40.0, 1, Reason.BEHIND),
        (5000, False, 40.0, 4, Reason.BEHIND),
        (11_000, False, 40.0, 10, Reason.BEHIND),
        (11_251, False, 40.0, 10, Reason.BOUNDED),
        (12_000, True, 40.0, 10, Reason.BOUNDED),
        (900, True, 40.0, 10, Reason.BOUNDED),  # nobody knows how many more
        (900, False, 96.0, 0, Reason.NEXT_TICK),
        (900, False, 97.0, 1, Reason.OLD),
    ],
)
def test_as_many_as_are_needed_beside_the_next_tick(
    due: int, more: bool, oldest: float, messages: int, reason: Reason
) -> None:
    backlog = Backlog(due=due, more=more, oldest_due_seconds=oldest)
    decided = wave(backlog, RUN, 10)
    assert (decided.messages, decided.reason) == (messages, reason)


@given(
    due=st.integers(0, 10**9),
    more=st.booleans(),
    oldest=st.floats(0, 1e9),
    closed_=st.integers(1, 10**7),
    most=st.integers(1, 100),
)
def test_a_wave_is_never_larger_than_it_may_be(
    due: int, more: bool, oldest: float, closed_: int, most: int
) -> None:
    pulled = Pulled(closed=closed_, seconds=48.0)
    decided = wave(Backlog(due=due, more=more, oldest_due_seconds=oldest), pulled, most)
    assert 0 <= decided.messages <= most
    assert 1 <= count_limit(pulled, most) <= COUNT_MAX
    if not more and decided.reason is Reason.BEHIND:
        assert decided.messages * closed_ < due, "the last of them would find nothing"


def test_as_far_as_is_counted_decides_the_largest_wave() -> None:
    """Else a count that stopped at its limit would be taken for the whole."""
    limit = count_limit(RUN, 10)
    assert wave(Backlog(due=limit - 1), RUN, 10).reason is Reason.BOUNDED


@pytest.mark.parametrize("ended", [one for one in Ending if one is not Ending.DEADLINE])
def test_a_run_that_was_done_in_time_or_broke_asks_for_none(ended: Ending) -> None:
    assert idle_reason(summary(ended, delivered=5), 10) is Reason.IN_TIME


def test_a_run_that_closed_nothing_asks_for_none() -> None:
    failing = summary(Ending.DEADLINE, claimed=500, retried=400, released=100)
    assert idle_reason(failing, 10) is Reason.NOTHING_CLOSED
    assert idle_reason(summary(Ending.DEADLINE, parked=1), 10) is None
    counted = summary(Ending.DEADLINE, delivered=3, parked=2, expired=1, uncertain=2, retried=9)
    assert closed(counted) == 6


def test_no_message_allowed_is_off() -> None:
    assert idle_reason(summary(Ending.DEADLINE, delivered=5), 0) is Reason.OFF


@pytest.mark.parametrize(
    ("messages", "seconds", "stands"), [(1, 60, 90), (10, 60, 630), (100, 60, WAVE_SECONDS_MAX)]
)
def test_a_wave_stands_for_its_runs_one_after_the_other(
    messages: int, seconds: float, stands: float
) -> None:
    assert wave_seconds(messages, seconds) == stands


def test_the_message_is_the_command_that_backfill_reads() -> None:
    id = uuid.uuid4()
    command = read_command(drain_message(id))
    assert isinstance(command, Drain)
    assert command.label.id == id
    assert json.loads(drain_message(id))["version"] == 1
