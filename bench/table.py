"""What a subject came to: tables of text, printed as they are kept."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`notes` say how it was measured and what the columns mean."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        widths = [
            max(len(row[place]) for row in (self.columns, *self.rows))
            for place in range(len(self.columns))
        ]
        rule = ["-" * width for width in widths]
        lines = [_line(row, widths) for row in (self.columns, rule, *self.rows)]
        return "\n".join(
            [f"### {self.title}", "", *lines, "", *(f"* {note}" for note in self.notes)]
        )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        + " |"
    )


def number(value: float) -> str:
    """Three figures that mean something, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def times(value: float) -> str:
    return f"{value:.2f}x"
