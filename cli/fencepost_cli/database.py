"""The one place where commands meet the database."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fencepost_cli.exit_code import CommandFailed, ExitCode

if TYPE_CHECKING:
    from fencepost.ports import Access
    from fencepost.store.operator import Operator


@contextmanager
def operator(database_url: str | None) -> "Iterator[Operator]":
    """A connected operator. Imported here: the driver takes longer to load than all of `--help`."""
    access = way_in(database_url)
    from fencepost.store.operator import Operator

    with Operator(access, who=_who()) as opened:
        yield opened


def way_in(database_url: str | None) -> "str | Access":
    """The URL as it was said, or what the environment says of a secret, a token, a CA file (FENCEPOST_DATABASE_…)."""
    from fencepost.core.access import FromUrl
    from fencepost.settings import SettingsError, read_database

    said = database_url.strip() if database_url else ""
    try:
        database = read_database(over={"DATABASE_URL": said} if said else {})
        if isinstance(database.credentials, FromUrl) and database.ca_file is None:
            return database.url
        from fencepost.bootstrap import reach

        return reach(database)
    except SettingsError as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None


def _who() -> str | None:
    """Whose word it was, for `explain`; None where the system does not know its user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
