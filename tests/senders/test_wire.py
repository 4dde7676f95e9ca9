"""The engine's edges that no peer can provoke at will."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from httpunk.exceptions import ConnectionClosedError, GoAwayError, StreamResetError

from fencepost.core.reply import Phase
from fencepost.senders.progress import Progress
from fencepost.senders.trouble import Trouble
from fencepost.senders.wire import H2Wire, Stream


@dataclass
class Transport:
    """As much of asyncio's as a stream asks of it."""

    closing: bool
    written: bytes = b""

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.written += data


def stream_over(transport: Transport, progress: Progress) -> Stream:
    stream = Stream()
    stream._transport = transport
    stream.on_write = progress.left
    return stream


async def test_a_byte_for_a_closing_socket_has_not_left() -> None:
    transport, progress = Transport(closing=True), Progress()
    with pytest.raises(BrokenPipeError):
        await stream_over(transport, progress).send_all(b"POST")
    assert (transport.written, progress.phase) == (b"", Phase.NOT_SENT)


async def test_a_byte_for_an_open_socket_is_leaving() -> None:
    transport, progress = Transport(closing=False), Progress()
    await stream_over(transport, progress).send_all(b"POST")
    assert (transport.written, progress.phase) == (b"POST", Phase.UNCERTAIN)


@pytest.mark.parametrize(
    ("wrong", "phase", "trouble"),
    [
        (GoAwayError(5, 0), Phase.NOT_SENT, Trouble.GONE_AWAY),
        (GoAwayError(7, 0), Phase.UNCERTAIN, Trouble.CONNECTION_LOST),
        (GoAwayError(9, 2), Phase.UNCERTAIN, Trouble.CONNECTION_LOST),
        (StreamResetError(7, 7), Phase.NOT_SENT, Trouble.STREAM_REFUSED),
        (StreamResetError(7, 8), Phase.UNCERTAIN, Trouble.CONNECTION_LOST),
        (StreamResetError(7, 999), Phase.UNCERTAIN, Trouble.CONNECTION_LOST),
        (ConnectionClosedError("lost"), Phase.UNCERTAIN, Trouble.CONNECTION_LOST),
    ],
)
def test_how_far_the_seventh_stream_got(wrong: Exception, phase: Phase, trouble: Trouble) -> None:
    wire = H2Wire.__new__(H2Wire)
    wire._driver = SimpleNamespace(_stopped_error=lambda stream, stop: wrong)
    progress = Progress()
    progress.left()
    broken = wire._broken(SimpleNamespace(id=7, stop=None), progress)
    assert (progress.phase, broken.trouble) == (phase, trouble)


def test_an_early_answer_stands_while_the_rest_still_leaves() -> None:
    progress = Progress()
    progress.answered(413, {})
    progress.left()
    assert progress.phase is Phase.ANSWERED
