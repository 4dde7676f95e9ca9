"""docs/own-sender.md as it stands there: installed as a package of its own, found, configured, and delivering."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from rig.ground import ROOT
from tests.cli.conftest import Fencepost

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
PAGE = (ROOT / "docs" / "own-sender.md").read_text()
MORE = {"NTFY_TOKEN": "tk_secret", "FENCEPOST_INSTALLATION": "test"}
LINES_MAX = 50  # of code: an example that nobody reads to its end explains nothing


def block(name: str) -> str:
    """The fenced block that begins with this file's name."""
    found = re.search(rf"```\w+\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built and installed by pip, into a folder of its own."""
    source, target = tmp_path_factory.mktemp("ntfy"), tmp_path_factory.mktemp("site")
    for name in ("fencepost_ntfy.py", "pyproject.toml"):
        (source / name).write_text(block(name))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, capture_output=True)
    return str(target)


@pytest.fixture
def ntfy() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A server that takes what ntfy takes: its URL, and what came (authorization, body)."""
    came: list[tuple[str, Any]] = []

    class Topic(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            came.append((self.headers["authorization"], body))
            answer = b'{"id":"sPs71M8A2T","event":"message"}'
            self.send_response(429 if body["title"] == "too much" else 200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Topic)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    serving.join()
    server.server_close()


def test_the_example_is_short() -> None:
    code = [line for line in block("fencepost_ntfy.py").splitlines() if line.strip()]
    assert len(code) <= LINES_MAX


def test_the_example_delivers(
    fencepost: Fencepost,
    tmp_path: Path,
    installed: str,
    ntfy: tuple[str, list[tuple[str, Any]]],
) -> None:
    url, came = ntfy
    more = {**MORE, "PYTHONPATH": installed}
    channels = tmp_path / "channels.toml"
    channels.write_text(block("channels.toml") + f'settings = {{ endpoint = "{url}" }}\n')
    assert fencepost("bind", "test").code == 0
    applied = fencepost("channel", "apply", str(channels), more=more)
    assert (applied.code, applied.err) == (0, "")
    rows = [
        {"channel": "alerts", "recipient": "disk", "payload": {"title": title, "body": "Grüße"}}
        for title in ("full", "too much")
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert fencepost("enqueue", "-", stdin=lines.encode()).code == 0
    summary = fencepost("run", "--json", more=more).json
    assert summary["delivered"] == 1
    assert {authorization for authorization, _ in came} == {"Bearer tk_secret"}
    asked = sorted(
        (body for _, body in came), key=itemgetter("title")
    )  # both were on their way at once
    assert asked == [
        {"topic": "disk", "title": title, "message": "Grüße"} for title in ("full", "too much")
    ]
    assert "sPs71M8A2T" in fencepost("explain", "1").out


def test_a_setting_it_does_not_know_is_refused(
    fencepost: Fencepost, tmp_path: Path, installed: str
) -> None:
    channels = tmp_path / "channels.toml"
    channels.write_text(block("channels.toml") + "settings = { topic = 3 }\n")
    assert fencepost("bind", "test").code == 0
    said = fencepost("channel", "apply", str(channels), more={"PYTHONPATH": installed})
    assert said.code == 1
    assert "channel alerts: settings: there is no topic; known: endpoint" in said.err


def test_a_policy_that_its_provider_cannot_serve_is_refused(
    fencepost: Fencepost, tmp_path: Path, installed: str
) -> None:
    channels = tmp_path / "channels.toml"
    channels.write_text(block("channels.toml").replace('"hold"', '"reconcile"'))
    said = fencepost("channel", "apply", str(channels), more={"PYTHONPATH": installed})
    assert said.code == 1
    assert "channel alerts: on_uncertain = reconcile cannot work" in said.err
