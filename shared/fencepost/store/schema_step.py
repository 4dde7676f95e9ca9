"""The schema as the deploy step knows it: how it stands, and bringing it up to date within the time there is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fencepost.core.deployment import Standing
from fencepost.core.operation import SchemaMissing
from fencepost.store.migration import State
from fencepost.store.operator import Operator

WHO = "deploy"


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
        cut = threading.Timer(max(within_seconds, 0.0), operator.say.connection.cancel)
        cut.start()
        try:
            yield SchemaStep(operator)
        finally:
            cut.cancel()
            cut.join()
