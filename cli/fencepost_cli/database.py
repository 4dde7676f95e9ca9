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
    from fencepost.core.access import FromUrl, ImpossibleAccess
    from fencepost.settings import SettingsError, read_database
    from fencepost.store.access import read_url

    said = database_url.strip() if database_url else ""
    try:
        database = read_database(over={"DATABASE_URL": said} if said else {})
        if isinstance(database.credentials, FromUrl) and database.ca_file is None:
            read_url(database.url)  # what nobody can read is no database that is away
            return database.url
        from fencepost.bootstrap import reach

        return reach(database)
    except (SettingsError, ImpossibleAccess) as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from None


def check_owner(database_url: str | None, installation: str) -> None:
    """Raises `CommandFailed` where this is another installation's database."""
    with operator(database_url) as database:
        bound_to = database.bound_to()
    if bound_to != installation:
        whose = f"belongs to installation {bound_to}" if bound_to else "is bound to no installation"
        raise CommandFailed(f"this database {whose}, and FENCEPOST_INSTALLATION is {installation}")


def _who() -> str | None:
    """Whose word it was, for `explain`; None where the system does not know its user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
