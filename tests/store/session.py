"""Real sessions beside the store: open transactions, waiting sessions, and a wire that loses answers."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import fencepost.store.postgres
from fencepost.core.exchange import Exchange, Exchanged, Want, Word
from fencepost.core.notification import Held
from fencepost.store import arrays, words
from tests.store.bench import LEASE_SECONDS, Worker

EXCHANGE = (Path(fencepost.store.postgres.__file__).parent / "queries/exchange.sql").read_bytes()
BOUND_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what can be observed, not for time; give up after the bound."""
    end = time.monotonic() + BOUND_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, f"did not happen: {what}"
        pause.wait(0.005)


class Session:
    """One real session whose transaction stays open until it is committed."""

    def __init__(self, url: str, *, autocommit: bool = False) -> None:
        self.connection = psycopg.connect(url, autocommit=autocommit, prepare_threshold=None)
        arrays.teach(self.connection)
        self.pid = self.connection.info.backend_pid

    def say(
        self,
        worker: Worker,
        *settle: Word,
        renew: tuple[Held, ...] = (),
        claim: tuple[Want, ...] = (),
        last: bool = False,
        seq: int | None = None,
    ) -> Exchanged:
        worker.seq = worker.seq + 1 if seq is None else seq
        said = Exchange(
            run=worker.run,
            seq=worker.seq,
            lease_seconds=LEASE_SECONDS,
            settle=settle,
            renew=renew,
            claim=claim,
            last=last,
        )
        return words.exchanged(said, self.rows(EXCHANGE, words.exchange_arguments(said)))

    def rows(
        self, query: str | bytes, arguments: Mapping[str, Any] | list[Any] | None = None
    ) -> list[tuple[Any, ...]]:
        text = query.encode() if isinstance(query, str) else query
        cursor = self.connection.execute(text, arguments)
        return cursor.fetchall() if cursor.description else []

    def commit(self) -> None:
        self.connection.commit()


@contextlib.contextmanager
def session(url: str, *, autocommit: bool = False) -> Iterator[Session]:
    opened = Session(url, autocommit=autocommit)
    with opened.connection:
        yield opened


@contextlib.contextmanager
def aside() -> Iterator[Callable[..., Future[Any]]]:
    """Do something in a thread while this one goes on."""
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


def until_waiting(observer: psycopg.Connection, pid: int) -> None:
    """Until that session waits for a row that another holds."""
    query = b"select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    until(lambda: bool((observer.execute(query, [pid]).fetchone() or (False,))[0]), f"{pid} waits")


class Wire:
    """A wire to the server that can lose the server's answers, and be cut."""

    def __init__(self, url: str) -> None:
        place = conninfo_to_dict(url)
        self.server = (str(place.get("host", "127.0.0.1")), int(place.get("port") or 5432))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = make_conninfo(url, host="127.0.0.1", port=self.listener.getsockname()[1])
        self.losing = False
        self.silent = False  # both ways, as a network that drops everything
        self.lost = 0
        self.ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.server)
                self.ends += [near, far]
                threading.Thread(target=self._carry, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, True), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.silent or (answers and self.losing):
                    self.lost += len(data)
                else:
                    sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Cut what is connected now; what is dialled afterwards goes through again."""
        self.losing = self.silent = False
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self.ends.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
