"""Cold start: importing the handler with and without bytecode, the first words with the database, the layers' size."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench.backlog import add
from bench.layers import lay, size_mib, zipped_mib
from bench.load import load_fencepost
from bench.paired import interleaved
from bench.plan import Plan
from bench.probe import Probe
from bench.server import INSTALLATION, SECRET, Server, available, running
from bench.subject.sends import provider
from bench.table import Table, number
from rig.ground import ROOT

HANDLER = ROOT / "functions" / "deliver"
COLD = ROOT / "bench" / "cold.py"
CONNECTIONS, EXCHANGES = 15, 10
DUE = 50

Told = dict[str, Any]


def measure(plan: Plan) -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as name:
        folder = Path(name)
        compiled = lay(folder / "compiled", compiled=True)
        bare = lay(folder / "bare", compiled=False)
        with running(available()["18"]) as server:
            return [
                _imports(plan, compiled, bare),
                _ticks(server, compiled),
                _first_words(server),
                _sizes(compiled),
            ]


def _imports(plan: Plan, compiled: Sequence[Path], bare: Sequence[Path]) -> Table:
    rounds: dict[str, Callable[[], Told]] = {
        "compiled (as built)": partial(cold, compiled, "import"),
        "not compiled": partial(cold, bare, "import"),
    }
    taken = interleaved(rounds, max(5, plan.repeats))
    rows = [
        (name, *(number(median(one[what] for one in told)) for what in ("cpu_ms", "wall_ms")))
        for name, told in taken.items()
    ]
    return Table(
        title="Import of the deliver handler in a fresh process",
        columns=("layers", "CPU ms", "wall ms"),
        rows=rows,
        notes=("The standard library is compiled in both, as it is in Lambda's image.",),
    )


def _ticks(server: Server, layers: Sequence[Path]) -> Table:
    """boto3 is within reach, as in Lambda: a tick must not load it."""
    with provider("h2") as (folder, url), server.database() as database:
        environment = {
            "DATABASE_URL": database,
            "FENCEPOST_INSTALLATION": INSTALLATION,
            "SSL_CERT_FILE": str(folder / "ca.pem"),
            "BENCH_SECRET": SECRET,
        }
        idle = cold(layers, "tick", environment)
        with psycopg.connect(database, autocommit=True) as connection:
            load_fencepost(connection, DUE, lambda number: f"{url}/after/0010")
        busy = cold(layers, "tick", environment)
    if (idle["answer"]["ended"], busy["answer"]["delivered"]) != ("idle", DUE):
        raise RuntimeError(f"the ticks came to {idle['answer']} and {busy['answer']}")
    rows = [
        (
            name,
            number(told["tick_ms"]),
            number(told["tick_cpu_ms"]),
            "yes" if told["boto3"] else "no",
        )
        for name, told in (("idle", idle), (f"{DUE} sends of 10 ms", busy))
    ]
    return Table(
        title="The first tick of a fresh process, after its import",
        columns=("tick", "wall ms", "CPU ms", "boto3 loaded"),
        rows=rows,
    )


def _first_words(server: Server) -> Table:
    with (
        server.database() as url,
        psycopg.connect(url, autocommit=True) as connection,
        asyncio.Runner() as runner,
    ):
        add(connection, 20_000, "due-")
        connection.execute("vacuum analyze")
        taken = [runner.run(_words(url)) for _ in range(CONNECTIONS)]
    names = ("connect and start_run", "first exchange", "second", f"{EXCHANGES}th")
    rows = [(name, number(median(one[place] for one in taken))) for place, name in enumerate(names)]
    return Table(
        title=f"The first words on a new connection, PostgreSQL {server.version}",
        columns=("words", "ms"),
        rows=rows,
        notes=(
            f"Median of {CONNECTIONS} connections; exchanges claim 50 and settle 50 from the second on.",
        ),
    )


async def _words(url: str) -> tuple[float, float, float, float]:
    probe = Probe(url)
    began = time.perf_counter()
    await probe.begin()
    started = (time.perf_counter() - began) * 1000
    took = [await probe.timed(claim=True) for _ in range(EXCHANGES)]
    await probe.timed(claim=False)
    await probe.store.close()
    return started, took[0], took[1], took[-1]


def _sizes(layers: Sequence[Path]) -> Table:
    rows = [
        (layer.name, number(size_mib(layer)), number(zipped_mib(layer)), f"{_count(layer):,}")
        for layer in layers
    ]
    return Table(
        title="Layers, compiled",
        columns=("layer", "MiB unpacked", "MiB zipped", "files"),
        rows=rows,
        notes=(
            "From the packages installed here; the built ones differ by the wheels of their architecture.",
        ),
    )


def _count(layer: Path) -> int:
    return sum(1 for file in layer.rglob("*") if file.is_file())


def cold(layers: Sequence[Path], what: str, environment: Mapping[str, str] = {}) -> Told:
    """A fresh interpreter with nothing but the layers (and, behind them, what Lambda's image brings)."""
    paths = [str(layer) for layer in layers]
    if what == "tick":
        paths.append(str(Path(psycopg.__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-S", "-B", str(COLD), str(HANDLER), what],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        check=True,
        text=True,
    )
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told
