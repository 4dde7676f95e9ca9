"""How much of an invocation a message may have."""

from uuid import UUID

import pytest

from fencepost.core.backfill import (
    ACKNOWLEDGED,
    MARGIN,
    PAGE_SECONDS,
    RETURN_SECONDS,
    Begun,
    Ended,
    Ending,
    Pace,
    Turn,
    Verdict,
    kept_for_run,
    over,
    share,
)
from fencepost.core.command import CommandId, CommandRefused


@pytest.mark.parametrize(
    ("left", "records", "expected"),
    [
        (60.0, 1, 58.0),
        (60.0, 10, 5.8),
        (RETURN_SECONDS, 1, 0.0),
        (0.0, 3, 0.0),
        (-5.0, 3, 0.0),
        (60.0, 0, 58.0),
    ],
)
def test_time_is_shared_among_the_records_that_are_left(
    left: float, records: int, expected: float
) -> None:
    limit, until = share(100.0, 100.0 + left, records)
    assert until - 100.0 == pytest.approx(expected)
    assert limit == pytest.approx(98.0 + left)


def test_what_is_kept_for_a_run_is_nobody_elses_share() -> None:
    kept = kept_for_run(100.0, 160.0)
    assert kept == 29.0
    now = 100.0
    for records in range(9, 0, -1):
        _, now = share(now, 160.0, records, kept=kept)
    assert now == pytest.approx(129.0)
    assert share(now + 5.0, 160.0, 1, kept=kept)[1] == now + 5.0
    assert kept_for_run(100.0, 101.0) == 0.0


def test_the_first_page_may_use_the_time_of_the_others() -> None:
    """Else ten records at the end of an invocation would all come back, although one could be done."""
    pace = Pace(limit=10.0, until=0.1)
    assert pace.fits(10.0 - PAGE_SECONDS)
    assert not pace.fits(10.01 - PAGE_SECONDS)


def test_a_further_page_must_surely_end_within_the_share() -> None:
    pace = Pace(limit=10.0, until=5.0)
    pace.took(1.0)
    assert pace.fits(5.0 - MARGIN)
    assert not pace.fits(5.01 - MARGIN)


def test_never_beyond_the_limit() -> None:
    pace = Pace(limit=3.0, until=50.0)
    pace.took(1.0)
    assert not pace.fits(1.5)


def test_a_slow_page_is_forgotten_after_some_fast_ones() -> None:
    pace = Pace(limit=100.0, until=5.0)
    pace.took(2.0)
    assert not pace.fits(1.5)
    for _ in range(4):
        pace.took(0.1)
    assert pace.fits(3.9)


def test_an_id_said_twice_with_other_words_is_named() -> None:
    turn = Turn(id=CommandId(UUID(int=7)), fence=1, place={})
    with pytest.raises(CommandRefused, match=str(UUID(int=7))):
        over(Begun(verdict=Verdict.DIFFERS, turn=turn, counts={}))


@pytest.mark.parametrize("ending", Ending)
def test_only_what_is_sure_to_be_done_is_acknowledged(ending: Ending) -> None:
    sure = ending in {Ending.DONE, Ending.CONTINUED, Ending.SUPERSEDED, Ending.KNOWN}
    assert Ended(ending=ending).acknowledged is sure
    assert (ending in ACKNOWLEDGED) is sure
