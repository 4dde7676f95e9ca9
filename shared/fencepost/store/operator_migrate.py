"""Migrations as an operator sees them: the same files and promises as `migrate`, errors of the operator's tree."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from fencepost.core.operation import DatabaseAway, OperatorError, Refused, SchemaMissing
from fencepost.store import migrate
from fencepost.store.statement import Connection


class Migrations:
    """Over the operator's own connection, which is outside any transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def apply(self, *, dry_run: bool = False) -> list[str]:
        """Bring the schema up to date; the names of what was (or would be) applied."""
        with _translated():
            return migrate.migrate(self._connection, dry_run=dry_run)

    def check(self) -> list[migrate.Migration]:
        """Every file this code or this database knows, with its state. Reads only."""
        with _translated():
            return migrate.check(self._connection)

    def boundary_missing(self) -> list[str]:
        """What is missing of the boundary between the roles, a sentence each."""
        with _translated():
            return migrate.boundary_missing(self._connection)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (migrate.DatabaseNewer, migrate.FileChanged) as error:
        raise SchemaMissing(str(error)) from None
    except migrate.MigrationError as error:
        raise _kind(error)(str(error)) from None


def _kind(error: migrate.MigrationError) -> type[OperatorError]:
    away = isinstance(error.__cause__, psycopg.OperationalError)
    return DatabaseAway if away and not isinstance(error, migrate.MigrationBusy) else Refused
