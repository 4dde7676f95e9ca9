"""The bench's own arithmetic and bookkeeping; never a time."""

from importlib import import_module

import pytest

from bench.__main__ import SUBJECTS
from bench.paired import interleaved, quantile, ratio
from bench.plan import Plan
from bench.readme import README, replaced
from bench.subject.sends import tailed
from bench.table import Table, number


def test_the_order_is_reversed_at_each_repetition() -> None:
    order: list[str] = []

    def taken(name: str) -> str:
        order.append(name)
        return name

    rounds = {name: lambda name=name: taken(name) for name in "ab"}
    assert interleaved(rounds, 3) == {"a": ["a"] * 3, "b": ["b"] * 3}
    assert "".join(order) == "abbaab"


def test_a_ratio_is_the_median_of_pairs_and_not_of_sides() -> None:
    assert ratio([1.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 3), (0.99, 4), (1.0, 4)])
def test_a_quantile_is_one_of_the_values(share: float, value: float) -> None:
    assert quantile([4, 1, 3, 2], share) == value


def test_scale_shrinks_rows_down_to_a_floor_but_never_above_what_was_meant() -> None:
    plan = Plan(scale=0.01)
    assert (plan.rows(1_000_000), plan.rows(1_000), plan.rows(200)) == (10_000, 500, 200)


def test_a_table_reads_the_same_in_a_terminal_and_in_a_page() -> None:
    table = Table(title="T", columns=("a", "long"), rows=[("x", number(1234.5))], notes=("why",))
    assert table.markdown() == ("### T\n\n| a | long  |\n| - | ----- |\n| x | 1,234 |\n\n* why")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_can_be_measured_and_has_its_place_in_the_page(subject: str) -> None:
    assert callable(import_module(f"bench.subject.{subject}").measure)
    page = README.read_text()
    kept = replaced(page, subject, "FIGURES")
    assert kept.count("FIGURES") == 1
    for other in set(SUBJECTS) - {subject}:
        assert _section(kept, other) == _section(page, other)


def test_a_subject_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for heat"):
        replaced("", "heat", "1")


def test_the_tail_is_as_mixed_as_it_is_said_to_be() -> None:
    answers = [tailed(number) for number in range(1, 4001)]
    assert quantile(answers, 0.5) == pytest.approx(50, rel=0.1)
    assert quantile(answers, 0.99) == pytest.approx(500, rel=0.25)
    assert tailed(7) == tailed(7)


def _section(page: str, subject: str) -> str:
    return page.partition(f"<!-- {subject} -->")[2].partition(f"<!-- /{subject} -->")[0]
