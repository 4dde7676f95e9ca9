"""`python -m rig.postgres`: a server for whoever has none, and nothing of it afterwards."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from rig.postgres import LocalPostgres
from tests.project.sources import ROOT

pytestmark = pytest.mark.postgres


def test_it_serves_until_it_is_asked_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rig.postgres"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        url = served.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            row = connection.execute("show log_lock_waits").fetchone()
            assert row == ("on",)
        with pytest.raises(OSError, match="in use"):
            LocalPostgres(tmp_path, port=int(url.partition("127.0.0.1:")[2].partition("/")[0]))
        served.terminate()
        assert served.wait(120) == 0
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
