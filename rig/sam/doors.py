"""More ports that lead to the receiver: each is a host of its own to the worker, which gives a silent one few slots."""

import contextlib
import socket
import threading
from collections.abc import Iterator

CHUNK = 65_536


@contextlib.contextmanager
def doors(address: str, port: int, count: int) -> Iterator[list[int]]:
    """So many further ports of `address`, until the block ends."""
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_server((address, 0), backlog=64))
            for _ in range(count)
        ]
        for one in opened:
            threading.Thread(target=_let_in, args=(one, (address, port)), daemon=True).start()
        yield [one.getsockname()[1] for one in opened]


def _let_in(door: socket.socket, receiver: tuple[str, int]) -> None:
    with contextlib.suppress(OSError):  # closed: the block has ended
        while True:
            caller, _ = door.accept()
            inside = socket.create_connection(receiver)
            for source, sink in ((caller, inside), (inside, caller)):
                threading.Thread(target=_carry, args=(source, sink), daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with source, contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
