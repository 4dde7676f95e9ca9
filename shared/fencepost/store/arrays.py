"""Arrays written whole, in the binary form the server reads them in.

psycopg writes a list element by element, in Python: of a run's time for its exchanges that was a third.
"""

import struct
from collections.abc import Sequence

from msgspec import Struct
from psycopg import AsyncConnection, Connection, DataError
from psycopg.adapt import Dumper
from psycopg.pq import Format

BIGINT, INT, SMALLINT, BYTEA = 20, 23, 21, 17  # pg_type.oid: the same in every database
LETTERS = {BIGINT: "q", INT: "i", SMALLINT: "h"}
NULL = struct.pack("!i", -1)


class Array(Struct, frozen=True):
    """One dimension of what one of these types holds. What does not fit is a DataError when it is said."""

    oid: int
    elements: Sequence[int | bytes | None]


class ArrayDumper(Dumper):
    """The statement's cast says the type; the bytes say that of the elements."""

    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        try:
            return _packed(obj.oid, obj.elements)
        except struct.error as why:
            raise DataError(f"not in the range of its type: {why}") from None


def teach(connection: AsyncConnection | Connection) -> None:
    """A connection has to know arrays before they are said over it."""
    connection.adapters.register_dumper(Array, ArrayDumper)


def labels(words: Sequence[str | None]) -> str:
    """An array of an enumeration, as text: words that need no quotes."""
    return "{" + ",".join(word or "null" for word in words) + "}"


def _packed(oid: int, elements: Sequence[int | bytes | None]) -> bytes:
    """What array_recv reads: dimensions, whether there are nulls, type, length, first index; each with its length."""
    if not elements:
        return struct.pack("!iiI", 0, 0, oid)
    nulls = None in elements
    head = struct.pack("!iiIii", 1, nulls, oid, len(elements), 1)
    if nulls or oid == BYTEA:
        return head + b"".join(_element(oid, element) for element in elements)
    flat: list[int | bytes | None] = [struct.calcsize("!" + LETTERS[oid])] * (2 * len(elements))
    flat[1::2] = elements
    return head + struct.pack(f"!{('i' + LETTERS[oid]) * len(elements)}", *flat)


def _element(oid: int, element: int | bytes | None) -> bytes:
    if element is None:
        return NULL
    data = element if isinstance(element, bytes) else struct.pack("!" + LETTERS[oid], element)
    return struct.pack("!i", len(data)) + data
