"""Sets the stage: database, provider, channels, notifications, runtimes. Everything it starts ends with it."""

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.database import Book, own_database
from demo.others import TIMEOUT_SECONDS, Others, lines, others
from demo.screen import Screen
from rig.command import fencepost
from rig.generate import write_file
from rig.ground import ROOT
from rig.postgres import local_postgres
from rig.receiver import SECRET, LocalProvider, local_provider
from rig.runtimes import Runtime

INSTALLATION = "demo"
CHANNELS = ROOT / "demo" / "channels.toml"
TIMING = {
    "FENCEPOST_SEND_TIMEOUT_SECONDS": "1.5",
    "FENCEPOST_SETTLE_RESERVE_SECONDS": "0.5",
    "FENCEPOST_LEASE_SECONDS": "3",
}


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything in place, and nothing sent yet."""

    folder: Path
    seed: int

    book: Book
    provider: LocalProvider
    others: Others
    runtimes: list[Runtime]
    environment: Mapping[str, str]  # for the `fencepost` command
    slots: int  # of one run, all channels together
    lines: int = 0  # of all files
    files: int = 0

    def enqueue(self, count: int) -> int:
        """One more file of notifications, through the `fencepost` command. How many lines it has."""
        file = self.folder / f"notifications-{self.files + 1}.jsonl"
        written = write_file(file, seed=self.seed + self.files, count=count, url=self.provider.url)
        fencepost(self.environment, "enqueue", str(file))
        self.files += 1
        self.lines += written
        return written

    def enqueue_others(self) -> int:
        """The pushes, mails and chat messages, in a file of their own."""
        file = self.folder / "others.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines()))
        fencepost(self.environment, "enqueue", str(file))
        count = sum(1 for _ in lines())
        self.lines += count
        return count


@contextlib.contextmanager
def set_stage(
    screen: Screen, folder: Path, *, seed: int, count: int, runtimes: int
) -> Iterator[Stage]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(own_database(stack.enter_context(_server(screen))))
        provider = stack.enter_context(local_provider(folder, seed=seed))
        screen.say(f"webhook receivers that misbehave on purpose at {provider.url}")
        beside = stack.enter_context(others(folder))
        screen.say(
            f"FCM over h2 at {beside.push_url}, SES (moto) at {beside.mail_url}, a chat at {beside.chat.url}"
        )
        environment = _environment(url) | beside.environment
        channels = folder / "channels.toml"
        channels.write_text(CHANNELS.read_text() + beside.channels())
        _prepare(screen, environment, channels)
        book = Book(url)
        stack.callback(book.close)
        started = [
            stack.enter_context(_runtime(environment, folder, n + 1)) for n in range(runtimes)
        ]
        stage = Stage(
            folder=folder,
            seed=seed,
            book=book,
            provider=provider,
            others=beside,
            runtimes=started,
            environment=environment,
            slots=_slots(channels),
        )
        count = stage.enqueue(count) + stage.enqueue_others()
        screen.say(f"fencepost enqueue: {count:,} notifications from two JSONL files")
        screen.say(f"{runtimes} real Lambda runtimes, function timeout {TIMEOUT_SECONDS} s")
        yield stage


@contextlib.contextmanager
def _server(screen: Screen) -> Iterator[str]:
    if url := os.environ.get("DATABASE_URL"):
        screen.say("PostgreSQL of DATABASE_URL, in a database of the demo's own")
        yield url
        return
    with local_postgres() as server:
        screen.say(f"an embedded PostgreSQL on port {server.port}")
        yield server.url


def _prepare(screen: Screen, environment: Mapping[str, str], channels: Path) -> None:
    fencepost(environment, "migrate")
    fencepost(environment, "bind", INSTALLATION)
    fencepost(environment, "channel", "apply", str(channels))
    screen.say("fencepost migrate · bind demo · channel apply demo/channels.toml (and three more)")


def _slots(channels: Path) -> int:
    tables: dict[str, dict[str, Any]] = tomllib.loads(channels.read_text())["channel"]
    return sum(one["slots"] for one in tables.values())


def _environment(url: str) -> dict[str, str]:
    own = {
        "DATABASE_URL": url,
        "FENCEPOST_INSTALLATION": INSTALLATION,
        "DEMO_WEBHOOK_SECRET": SECRET,
        **TIMING,
    }
    return {key: value for key, value in os.environ.items() if key in ("PATH", "LANG")} | own


def _runtime(environment: Mapping[str, str], folder: Path, number: int) -> Runtime:
    return Runtime(
        environment, timeout_seconds=TIMEOUT_SECONDS, folder=folder, name=f"deliver-{number}"
    )
