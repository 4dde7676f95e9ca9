"""One line of a notification's story."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """`at` is the database's text of an instant."""

    at: str
    text: str
