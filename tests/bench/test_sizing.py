"""The sizing sheet: its arithmetic on figures one can follow by hand, and the page against it."""

import pytest

from bench.readme import replaced
from bench.sizing import PAGE, Assumptions, Figures, figures_of, section, size, tables

FIGURES = Figures(
    run_rate=1000.0, worker_ms=0.25, server_us=50.0, wal=500.0, enqueue_wal=524.0, exchanges=0.02
)


def test_a_hundred_million_a_day_by_hand() -> None:
    found = size(86_400_000, FIGURES, Assumptions())
    assert (found.mean_rate, found.peak_rate) == (1000, 4000)
    assert found.peak_runs == 5  # 4,000 by 800 a run
    assert found.peak_connections == 1 + 2 * 4 + 1
    assert found.writes == 432_000_000
    assert found.commits == 1_728_000
    assert found.wal_gib == pytest.approx(86_400_000 * 1024 / 2**30)
    assert found.peak_wal_mib == pytest.approx(4000 * 1024 / 2**20)
    assert found.peak_server_cores == pytest.approx(0.2)
    assert found.run_hours == pytest.approx(30)  # 108,000 s
    assert found.drains == pytest.approx(1800 - 1440)
    assert found.lambda_cost == pytest.approx(108_000 * 0.5 * 0.0000133334 + 1800 * 0.2e-6)
    assert found.sqs_cost == pytest.approx((3 * 360 + 21_600) * 0.4e-6)


def test_little_needs_the_tick_and_nothing_else() -> None:
    found = size(1000, FIGURES, Assumptions())
    assert (found.peak_runs, found.peak_connections, found.drains) == (1, 2, 0)


def test_the_page_is_what_the_kept_figures_come_to() -> None:
    page = PAGE.read_text()
    assert page == replaced(page, "sizing", section()), "python -m bench.sizing --write"


def test_figures_are_read_as_the_bench_writes_them() -> None:
    table = "\n".join(
        [
            "<!-- scale -->",
            "### Runs at once, 10 slots each",
            "| runs | n/s |",
            "| ---- | --- |",
            "| 1    | 84  |",
            "### Runs at once, 100 slots each",
            "",
            "| runs | n/s   | CPU ms/n, runs | CPU us/n, server | WAL B/n | enqueue WAL B/n | exchanges/n |",
            "| ---- | ----- | -------------- | ---------------- | ------- | --------------- | ----------- |",
            "| 1    | 1,000 | 0.25           | 50.0             | 500     | 524             | 0.020       |",
            "| 2    | 2,000 | 9.99           | 9                | 9       | 9               | 9           |",
            "<!-- /scale -->",
        ]
    )
    assert figures_of(table) == FIGURES
    assert [one.title for one in tables(FIGURES, Assumptions())] == ["Figures", "Work", "Money"]
    with pytest.raises(ValueError, match="no figures of scale"):
        figures_of("<!-- scale --><!-- /scale -->")
