"""What a command says: JSON or a table on stdout, one line of trouble on stderr."""

import io
import sys
from collections.abc import Sequence
from typing import Any


class PipeClosed(Exception):
    """Whoever read our output went away. No OSError: others would take it for their own."""


def print_json(value: Any) -> None:
    """One document, one line; dataclasses become objects with their field names."""
    import msgspec

    _write(msgspec.json.encode(value).decode() + "\n")


def print_line(text: str = "") -> None:
    _write(printable(text) + "\n")


def print_trouble(text: str) -> None:
    """One line on stderr, whatever the text holds."""
    sys.stderr.write(f"fencepost: {printable(' '.join(text.split()))}\n")


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()
) -> None:
    """A plain table; columns named in `numbers` stand right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    drawn = io.StringIO()
    wide = Console().width if sys.stdout.isatty() else 200
    Console(file=drawn, width=wide, highlight=False).print(table)
    _write("".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines()))


def printable(text: str) -> str:
    """What others wrote may hold control characters; a terminal would obey them."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def flush() -> None:
    """Raises `PipeClosed`."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise PipeClosed from None


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise PipeClosed from None
