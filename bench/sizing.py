"""The sizing sheet of docs/scaling.md: figures of bench/README.md and named assumptions in, tables out.

`python -m bench.sizing` prints them, `--write` keeps them in the page. A test holds the page to this arithmetic.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.readme import README, replaced
from bench.table import Table, number

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
VOLUMES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
SECONDS_A_DAY, TICKS_A_DAY = 86_400, 1_440
MEBI, GIBI = 2**20, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one notification, and of one run, as bench/README.md has them."""

    run_rate: float  # notifications a second of one run alone
    worker_ms: float  # CPU of a run
    server_us: float  # CPU of PostgreSQL
    wal: float  # bytes, claim to closed
    enqueue_wal: float
    exchanges: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What nobody measured here: the shape of a day, the stack's parameters, and prices (us-east-1, arm64, dollars)."""

    peak: float = 4.0  # the busiest hour against the day's mean
    run_seconds: float = 60.0  # RunSeconds and BackfillSeconds
    end_seconds: float = (
        12.0  # of a run, in which it claims no more: send timeout and settle reserve
    )
    memory_gib: float = 0.5  # MemorySize
    lambda_gib_second: float = 0.0000133334
    lambda_request: float = 0.20 / 1e6
    sqs_request: float = 0.40 / 1e6
    sqs_requests_a_message: float = 3.0  # send, receive, delete
    pollers: float = 5.0  # of the event source; each asks every 20 seconds, messages or none


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One volume. Everything a day where nothing else is said; money in dollars."""

    volume: int
    mean_rate: float
    peak_rate: float
    peak_runs: int
    peak_connections: int
    writes: float  # row versions written
    commits: float
    wal_gib: float
    peak_wal_mib: float  # a second
    peak_server_cores: float
    run_hours: float
    lambda_cost: float
    drains: float
    sqs_cost: float


ROW_WRITES = 5  # notification, queue: enqueue · queue: claim · closed, queue (gone): settle


def size(volume: int, figures: Figures, given: Assumptions) -> Size:
    mean = volume / SECONDS_A_DAY
    peak = mean * given.peak
    claiming = 1 - given.end_seconds / given.run_seconds
    run_seconds = volume / (figures.run_rate * claiming)
    runs = run_seconds / given.run_seconds
    drains = max(0.0, runs - TICKS_A_DAY)
    invocations = TICKS_A_DAY + drains
    ticks = math.ceil(given.run_seconds / 60)
    peak_runs = max(ticks, math.ceil(peak / (figures.run_rate * claiming)))
    polls = given.pollers * SECONDS_A_DAY / 20
    wal = figures.wal + figures.enqueue_wal
    return Size(
        volume=volume,
        mean_rate=mean,
        peak_rate=peak,
        peak_runs=peak_runs,
        peak_connections=ticks + 2 * (peak_runs - ticks) + 1,
        writes=volume * ROW_WRITES,
        commits=volume * figures.exchanges,
        wal_gib=volume * wal / GIBI,
        peak_wal_mib=peak * wal / MEBI,
        peak_server_cores=peak * figures.server_us / 1e6,
        run_hours=run_seconds / 3600,
        lambda_cost=run_seconds * given.memory_gib * given.lambda_gib_second
        + invocations * given.lambda_request,
        drains=drains,
        sqs_cost=(drains * given.sqs_requests_a_message + polls) * given.sqs_request,
    )


def figures_of(readme: str) -> Figures:
    """The row of one run in the table of a hundred slots. Raises ValueError where it is not there."""
    section = readme.partition("<!-- scale -->")[2].partition("<!-- /scale -->")[0]
    table = section.partition("100 slots each")[2]
    rows = [_cells(line) for line in table.splitlines() if line.startswith("|")]
    if len(rows) < 3:
        raise ValueError("bench/README.md has no figures of scale: make bench ONLY=scale WRITE=1")
    row = dict(zip(rows[0], rows[2], strict=True))
    return Figures(
        run_rate=_number(row, "n/s"),
        worker_ms=_number(row, "CPU ms/n, runs"),
        server_us=_number(row, "CPU us/n, server"),
        wal=_number(row, "WAL B/n"),
        enqueue_wal=_number(row, "enqueue WAL B/n"),
        exchanges=_number(row, "exchanges/n"),
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _number(row: Mapping[str, str], name: str) -> float:
    return float(re.sub(r"[^0-9.]", "", row[name]))


def tables(figures: Figures, given: Assumptions) -> list[Table]:
    sizes = [size(volume, figures, given) for volume in VOLUMES]
    return [_inputs(figures), _work(sizes), _money(sizes)]


def _inputs(figures: Figures) -> Table:
    rows = [
        ("`rate`", number(figures.run_rate), "notifications a second of one run with 100 slots"),
        ("`worker`", f"{figures.worker_ms:.2f} ms", "CPU of a run for a notification"),
        (
            "`worker` x `rate`",
            f"{figures.worker_ms * figures.run_rate / 1000:.2f}",
            "of a core that one run keeps busy",
        ),
        ("`server`", f"{number(figures.server_us)} us", "CPU of PostgreSQL for a notification"),
        (
            "`wal`",
            f"{number(figures.wal)} + {number(figures.enqueue_wal)} B",
            "claim to closed, and enqueue",
        ),
        ("`exchanges`", f"{figures.exchanges:.3f}", "transactions of the runs for a notification"),
    ]
    return Table(title="Figures", columns=("name", "measured", "what it is"), rows=rows)


def _work(sizes: Sequence[Size]) -> Table:
    columns = (
        "a day",
        "mean n/s",
        "peak n/s",
        "runs at the peak",
        "connections",
        "row writes",
        "commits",
        "WAL GiB",
        "WAL MiB/s, peak",
        "server cores, peak",
    )
    rows = [
        (
            f"{one.volume:,}",
            number(one.mean_rate),
            number(one.peak_rate),
            f"{one.peak_runs:,}",
            f"{one.peak_connections:,}",
            number(one.writes),
            number(one.commits),
            number(one.wal_gib),
            number(one.peak_wal_mib),
            number(one.peak_server_cores),
        )
        for one in sizes
    ]
    return Table(title="Work", columns=columns, rows=rows)


def _money(sizes: Sequence[Size]) -> Table:
    columns = ("a day", "hours of runs", "Lambda $", "drain messages", "SQS $", "$ a million")
    rows = [
        (
            f"{one.volume:,}",
            number(one.run_hours),
            f"{one.lambda_cost:,.2f}",
            number(one.drains),
            f"{one.sqs_cost:,.2f}",
            f"{(one.lambda_cost + one.sqs_cost) / one.volume * 1e6:.3f}",
        )
        for one in sizes
    ]
    return Table(title="Money", columns=columns, rows=rows)


def section() -> str:
    """All of it, from the figures that are kept now."""
    found = figures_of(README.read_text())
    return "\n\n".join(table.markdown().strip() for table in tables(found, Assumptions()))


def keep_page() -> None:
    PAGE.write_text(replaced(PAGE.read_text(), "sizing", section()))


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        keep_page()
    print(section())
