"""One line of a notification's story."""

from msgspec import Struct


class Moment(Struct, frozen=True):
    """`at` is the database's text of an instant."""

    at: str
    text: str
