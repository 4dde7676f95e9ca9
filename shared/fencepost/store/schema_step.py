"""The schema as the deploy step knows it: how it stands, and bringing it up to date within the time there is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from fencepost.core.deployment import Standing
from fencepost.core.operation import SchemaMissing
from fencepost.store.migration import State
from fencepost.store.operator import Operator
from fencepost.store.statement import Connection

WHO = "deploy"
CUT_EVERY_SECONDS = 0.1


class SchemaStep:
    """Over an operator's connection. Raises `OperatorError`."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def standing(self) -> Standing:
        """Reads only; a database that has nothing of ours yet stands too."""
        files = self._operator.migrations.check()
        return Standing(
            bound_to=self._bound_to(),
            pending=tuple(one.name for one in files if one.state is State.PENDING),
            newer=tuple(one.name for one in files if one.state is State.UNKNOWN),
            changed=tuple(one.name for one in files if one.state is State.CHANGED),
        )

    def apply(self, installation: str) -> list[str]:
        """Bring the schema up to date and bind the database if it is nobody's; the names of what was applied."""
        applied = self._operator.migrations.apply()
        self._operator.bind(installation)
        return applied

    def boundary_missing(self) -> list[str]:
        return self._operator.migrations.boundary_missing()

    def _bound_to(self) -> str | None:
        try:
            return self._operator.bound_to()
        except SchemaMissing:
            return None


@contextmanager
def schema_step(conninfo: str, *, within_seconds: float) -> Iterator[SchemaStep]:
    """Whatever still goes on in the database when the time is up is cancelled there, and rolled back: a sandbox
    that is frozen or killed in mid-migration would leave its transaction, and its locks, behind."""
    with Operator(conninfo, who=WHO) as operator:
        over = threading.Event()
        cut = threading.Thread(
            target=_cut, args=(operator.say.connection, max(within_seconds, 0.0), over)
        )
        cut.start()
        try:
            yield SchemaStep(operator)
        finally:
            over.set()
            cut.join()


def _cut(connection: Connection, after_seconds: float, over: threading.Event) -> None:
    """Again and again: one cancel may fall between two statements."""
    if over.wait(after_seconds):
        return
    while not over.wait(CUT_EVERY_SECONDS):
        with suppress(psycopg.Error):  # it may be gone: then there is nothing to cut
            connection.cancel()
