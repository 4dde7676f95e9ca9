import pytest

from fencepost.core.duration import seconds_in, spoken


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("3d", 259200),
        ("0.5s", 0.5),
        (" 1m ", 60),
    ],
)
def test_a_written_duration_is_seconds(text: str, seconds: float) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "abc", "-5s", "5 minutes", "1e3", "nan", "inf", "5mm", "s"])
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration") as refused:
        seconds_in(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3599.9, "59 min 59 s"),
        (7500, "2 h 5 min"),
        (86400, "1 d"),
        (90000, "1 d 1 h"),
        (-12, "12 s"),
        (float("inf"), "for ever"),
    ],
)
def test_durations_are_spoken_in_two_units_at_most(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
