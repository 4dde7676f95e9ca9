"""One channel's gate: slots, pauses under a revision, rate, a busy row."""

import pytest

from fencepost.core.exchange import GateAnswer, GateWord, Want
from fencepost.core.gate import Gate
from tests.core.rows import KEYED, a_channel

OPEN = GateAnswer(revision=3, paused_for_seconds=0.0, reason=None, token_in_seconds=0.0)


def gate(paused_for_seconds: float = 0.0) -> Gate:
    return Gate(a_channel(paused_for_seconds=paused_for_seconds), KEYED, 0.0)


def a_pause(seconds: float) -> GateWord:
    return GateWord(channel=a_channel().id, revision=3, pause_seconds=seconds, reason="throttled")


def answered(one: Gate, **changes: float) -> None:
    fields = {"revision": 3, "paused_for_seconds": 0.0, "token_in_seconds": 0.0, **changes}
    one.answered(GateAnswer(reason=None, **fields), 0.0)  # type: ignore[arg-type]


def test_a_channel_paused_from_the_start_opens_when_it_is_over() -> None:
    one = gate(paused_for_seconds=5.0)
    assert not one.is_open(4.9)
    assert one.is_open(5.0)


def test_a_pause_closes_at_once_and_is_told_with_what_is_left_of_it() -> None:
    one = gate()
    assert one.pause(a_pause(30.0), 10.0)
    assert not one.is_open(39.9)
    word = one.unsaid_word(20.0)
    assert word is not None
    assert (word.pause_seconds, word.revision) == (20.0, 3)
    one.said()
    assert one.unsaid_word(20.0) is None


def test_a_shorter_pause_is_no_news() -> None:
    one = gate()
    one.pause(a_pause(30.0), 0.0)
    one.said()
    assert not one.pause(a_pause(5.0), 0.0)
    assert one.unsaid_word(0.0) is None
    assert one.opens_at() == 30.0


def test_the_databases_word_outranks_ours_but_not_what_it_has_not_heard() -> None:
    one = gate()
    one.pause(a_pause(30.0), 0.0)
    answered(one)  # an answer to words of before
    assert one.opens_at() == 30.0
    one.said()
    answered(one, paused_for_seconds=7.0)
    assert one.opens_at() == 7.0


def test_a_newer_revision_never_opens_what_this_run_closed() -> None:
    one = gate()
    one.pause(a_pause(30.0), 0.0)
    one.said()
    answered(one, revision=4)
    assert one.opens_at() == 30.0


def test_a_pause_nobody_heard_is_said_again_a_little_later() -> None:
    one = gate()
    one.pause(a_pause(30.0), 0.0)
    one.said()
    one.unheard(1.0)
    assert one.unsaid_word(1.0) is None
    assert one.unsaid_word(1.1) is not None


@pytest.mark.parametrize(
    ("hint", "got", "dry"),
    [(False, 0, True), (False, 3, True), (True, 0, False), (False, 5, False)],
)
def test_only_a_short_look_from_the_start_makes_it_dry(hint: bool, got: int, dry: bool) -> None:
    one = gate()
    one.claimed(Want(channel=one.id, limit=5, hint=hint), got, OPEN, 0.0)
    assert one.dry == dry


def test_after_a_short_look_with_a_hint_comes_one_from_the_start() -> None:
    one = gate()
    one.claimed(one.want(5), 5, OPEN, 0.0)
    assert one.want(5).hint
    one.claimed(one.want(5), 1, OPEN, 0.0)
    assert not one.want(5).hint


def test_quick_claims_look_from_the_start_once_a_second() -> None:
    one = gate()
    looks = []
    for hundredths in range(0, 300, 2):
        want = one.want(5)
        if not want.hint:
            looks.append(hundredths / 100)
        one.claimed(want, 5, OPEN, hundredths / 100)
    assert looks == pytest.approx([0.0, 1.02, 2.04])


def test_rate_tokens_and_pauses_do_not_make_it_dry() -> None:
    one = gate()
    answered(one, token_in_seconds=0.5)
    waiting = GateAnswer(revision=3, paused_for_seconds=0, reason=None, token_in_seconds=0.5)
    one.claimed(one.want(5), 0, waiting, 0.0)
    assert not one.dry
    assert one.opens_at() == 0.5


def test_a_busy_row_is_asked_again_ever_later_and_not_for_ever() -> None:
    one, now = gate(), 0.0
    for _ in range(7):
        one.claimed(one.want(5), 0, None, now)
        assert one.opens_at() > now
        now = one.opens_at()
    assert one.dry
