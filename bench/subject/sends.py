"""Real sends: the product's own loop against a provider on another core."""

import contextlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import NormalDist, median

import psycopg

from bench import nginx
from bench.crew import Crew
from bench.load import load_fencepost
from bench.paired import interleaved, ratio
from bench.plan import Plan
from bench.server import SECRET, Server, available, running
from bench.statement import statement
from bench.table import Table, number, times
from rig.ground import ROOT

CLIENT_CORE, OTHER_CORE = 0, 1  # the worker's own; the provider's and the server's
ANSWER_MS = 100
TAIL_MEDIAN_MS = 50
TAIL_SIGMA = math.log(10) / NormalDist().inv_cdf(0.99)  # p99 = 10 * p50
TAIL_SEED = 7
PROGRAMS = {
    "loop": ("bench.deliver", "loop"),
    "waves": ("bench.deliver", "waves"),
    "bare": ("bench.bare",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one worker did with everything that was due."""

    rate: float  # sends a second
    cpu_ms: float  # of the worker, a send
    rss_mib: float
    exchanges: float  # a notification


Delay = Callable[[int], int]  # of a notification by its number, milliseconds


def measure(plan: Plan) -> list[Table]:
    binaries = available()["18"]
    with running(binaries, core=OTHER_CORE) as server:
        return [_steady(server, plan), _tailed(server, plan)]


def _steady(server: Server, plan: Plan) -> Table:
    cases = [
        ("http/1.1", 100, 60_000),
        ("h2", 100, 60_000),
        ("h2", 1000, 60_000),
    ]  # a minute of work: what a tick a minute has
    rows = []
    for protocol, slots, at_full_scale in cases:
        due = plan.rows(at_full_scale)
        with provider(protocol) as (folder, url):
            rhythms = {
                rhythm: partial(
                    _sent, server, folder, url, rhythm=rhythm, slots=slots, due=due, delay=steady
                )
                for rhythm in ("bare", "loop")
            }
            both = interleaved(rhythms, plan.repeats)
        taken, ideal = both["loop"], slots * 1000 / ANSWER_MS
        against = ratio([one.rate for one in taken], [one.rate for one in both["bare"]])
        rate = median(one.rate for one in taken)
        rows.append(
            (
                f"{protocol}, {slots:,}",
                number(rate),
                f"{rate / ideal:.1%} of {ideal:,.0f}",
                f"{against:.1%}",
                f"{median(one.exchanges for one in taken):.3f}",
                f"{median(one.cpu_ms for one in taken):.3f}",
                number(median(one.rss_mib for one in taken)),
            )
        )
    return Table(
        title=f"Real sends, {ANSWER_MS} ms answers, PostgreSQL {server.version}",
        columns=(
            "in flight",
            "sends/s",
            "of ideal",
            "of bare sends",
            "exchanges/n",
            "CPU ms/send",
            "RSS MiB",
        ),
        rows=rows,
        notes=(
            "The worker of the deliver function (engine, store, webhook sender, transport) on one core; PostgreSQL and "
            f"the provider (TLS, {_provider_name()}) share the other. Start, first connections and end included.",
            "Ideal: in flight ÷ answer time. Bare: the same rows by the same sender, claimed before and settled after, "
            "so what this transport reaches against this provider, on this machine, with no database at all.",
        ),
    )


def _tailed(server: Server, plan: Plan) -> Table:
    due = plan.rows(6_000)
    with provider("h2") as (folder, url):
        rhythms = {
            rhythm: partial(
                _sent, server, folder, url, rhythm=rhythm, slots=100, due=due, delay=tailed
            )
            for rhythm in ("waves", "loop")
        }
        taken = interleaved(rhythms, plan.repeats)
    ideal = 100_000 * due / sum(map(tailed, range(1, due + 1)))
    waves = [one.rate for one in taken["waves"]]
    rows = [
        (
            {"waves": "in waves", "loop": "ours"}[rhythm],
            number(median(one.rate for one in sent)),
            f"{median(one.rate for one in sent) / ideal:.1%}",
            times(ratio([one.rate for one in sent], waves)),
            f"{median(one.exchanges for one in sent):.3f}",
        )
        for rhythm, sent in taken.items()
    ]
    return Table(
        title=f"A mixed tail: lognormal answers, p50 {TAIL_MEDIAN_MS} ms, p99 ten times that; 100 in flight",
        columns=("loop", "sends/s", "of ideal", "against waves", "exchanges/n"),
        rows=rows,
        notes=("Waves: claim 100, send them, wait for the last, settle all, claim again.",),
    )


def _provider_name() -> str:
    return f"nginx {nginx.version()}" if nginx.available() else "httpunk's server"


def steady(number: int) -> int:
    return ANSWER_MS


def tailed(number: int) -> int:
    """The same notification is as slow for both rhythms."""
    chance = random.Random(TAIL_SEED * 1_000_003 + number)
    return round(chance.lognormvariate(math.log(TAIL_MEDIAN_MS), TAIL_SIGMA))


def _sent(
    server: Server, folder: Path, url: str, *, rhythm: str, slots: int, due: int, delay: Delay
) -> Sent:
    with (
        server.database() as database,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        connection.execute(statement("channel_slots"), {"slots": slots})
        load_fencepost(connection, due, lambda number: f"{url}/after/{delay(number):04}")
        connection.execute("vacuum analyze")
        arguments = [*PROGRAMS[rhythm], database, str(slots), str(CLIENT_CORE)]
        environment = {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SSL_CERT_FILE": str(folder / "ca.pem"),
            "BENCH_SECRET": SECRET,
        }
        with Crew([[sys.executable, "-m", *arguments]], environment) as crew:
            crew.await_ready()
            crew.say("go")
            (told,) = crew.results()
        closed = _count(connection, "finished_fencepost")
        exchanges = _count(connection, "run_exchanges")
    if closed != due:
        raise RuntimeError(f"{rhythm}: {due} were due and {closed} were delivered")
    return Sent(
        rate=due / (told["ended"] - told["began"]),
        cpu_ms=told["cpu"] / due * 1000,
        rss_mib=told["rss_mib"],
        exchanges=exchanges / due,
    )


def _count(connection: psycopg.Connection, name: str) -> int:
    row = connection.execute(statement(name)).fetchone()
    assert row is not None
    return int(row[0])


@contextlib.contextmanager
def provider(protocol: str, module: str | None = None) -> Iterator[tuple[Path, str]]:
    """A provider on the other core (none named: the quickest there is): the folder of its authority, and its URL."""
    module = module or ("bench.nginx" if nginx.available() else "bench.provider")
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", module, name, protocol, str(OTHER_CORE)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe
        ) as process:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            try:
                yield folder, url
            finally:
                assert process.stdin is not None
                process.stdin.close()
                process.wait(10)
