"""Lines of a file, from wherever an earlier reader stopped."""

import io
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.backfill import lines as module
from fencepost.backfill.lines import Bad, Batch, Good, Rest, batches, read_lines
from fencepost.core.command import START, Place

GOOD = json.dumps({"channel": "way", "recipient": "r", "payload": {}}).encode()


def read(text: bytes, start: Place = START) -> list[Good | Bad | Rest]:
    stream = io.BytesIO(text)
    stream.seek(start.byte)
    return list(read_lines(stream, None, start))


def in_batches(text: bytes, start: Place = START, **most: int) -> list[Batch]:
    stream = io.BytesIO(text)
    stream.seek(start.byte)
    return list(batches(read_lines(stream, None, start), start, **most))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 100)
    monkeypatch.setattr(module, "CHUNK_BYTES", 30)


PARTS = st.lists(
    st.sampled_from([GOOD, b"", b"   ", b"x", b"y" * 250, b"\xff", b"z" * 101, b"w" * 100]),
    max_size=12,
)


@given(PARTS, st.booleans(), st.integers(1, 400))
@settings(deadline=None)
def test_wherever_it_is_taken_up_again_the_lines_are_the_same(
    parts: list[bytes], ended: bool, bytes_max: int
) -> None:
    before = module.LINE_BYTES_MAX, module.CHUNK_BYTES
    module.LINE_BYTES_MAX, module.CHUNK_BYTES = 100, 30
    try:
        text = b"\n".join(parts) + b"\n" * ended
        whole = in_batches(text)
        places = [START, *(batch.end for batch in in_batches(text, bytes_max=bytes_max))]
        found: list[Good | Bad] = []
        for start, end in pairwise(places):
            piece = next(iter(in_batches(text, start, bytes_max=bytes_max)))
            assert piece.end == end
            found.extend(piece.good)
            found.extend(piece.bad)
        wanted: list[Good | Bad] = []
        for batch in whole:
            wanted.extend(batch.good)
            wanted.extend(batch.bad)
        assert by_number(found) == by_number(wanted)
        assert places[-1].byte == len(text)
    finally:
        module.LINE_BYTES_MAX, module.CHUNK_BYTES = before


def by_number(lines: list[Good | Bad]) -> list[Good | Bad]:
    return sorted(lines, key=lambda line: line.number)


def test_a_line_that_is_too_long_is_one_bad_line_read_past_in_pieces(small: None) -> None:
    said = read(b"x" * 500 + b"\n" + GOOD + b"\n")
    assert [type(one) for one in said[:2]] == [Bad, Rest]
    assert [one.number for one in said] == [1] * (len(said) - 1) + [2]
    assert isinstance(said[-1], Good)
    assert sum(one.size for one in said) == 500 + 1 + len(GOOD) + 1
    assert max(one.size for one in said) <= 101


def test_a_place_within_such_a_line(small: None) -> None:
    text = b"x" * 500 + b"\n" + GOOD
    first = in_batches(text, bytes_max=1)[0]
    assert first.end == Place(byte=101, line=1, inside=True)
    rest = read(text, first.end)
    assert [one.number for one in rest if isinstance(one, Good)] == [2]
    assert not [one for one in rest if isinstance(one, Bad)]


def test_the_mark_of_a_byte_order_is_no_fault_of_the_first_line() -> None:
    (line,) = read(b"\xef\xbb\xbf" + GOOD)
    assert isinstance(line, Good)
    assert line.size == len(GOOD) + 3
