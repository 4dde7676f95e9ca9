"""The one place where commands meet the database."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fencepost_cli.exit_code import CommandFailed, ExitCode

if TYPE_CHECKING:
    from fencepost.store.operator import Operator


@contextmanager
def operator(database_url: str | None) -> "Iterator[Operator]":
    """A connected operator. Imported here: the driver takes longer to load than all of `--help`."""
    url = required(database_url)
    from fencepost.store.operator import Operator

    with Operator(url, who=_who()) as opened:
        yield opened


def required(database_url: str | None) -> str:
    if not database_url or not database_url.strip():
        raise CommandFailed(
            "DATABASE_URL is not set and there is no --database-url: where are the notifications?",
            ExitCode.USAGE,
        )
    return database_url


def _who() -> str | None:
    """Whose word it was, for `explain`; None where the system does not know its user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
