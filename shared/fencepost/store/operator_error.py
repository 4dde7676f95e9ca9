"""Database errors as one line for an operator: never a traceback, a value of the row, or a connection string."""

import psycopg
from psycopg import errors

from fencepost.core.operation import (
    NOT_MIGRATED,
    DatabaseAway,
    OperatorError,
    Refused,
    SchemaMissing,
)
from fencepost.store.failures import no_such_role

REFUSED = "FP001"  # raised by the schema's own functions: the text is meant to be shown
NOT_THERE = (errors.InvalidSchemaName, errors.UndefinedFunction, errors.UndefinedTable)
BUSY = (errors.DeadlockDetected, errors.SerializationFailure)


def translated(error: psycopg.Error) -> OperatorError:
    """Most specific first."""
    code = error.sqlstate or ""
    if code == REFUSED:
        return Refused(first_line(error))
    if isinstance(error, NOT_THERE):
        return SchemaMissing(NOT_MIGRATED)
    if isinstance(error, errors.InsufficientPrivilege):
        return Refused(f"the database role may not do this ({first_line(error)})")
    if isinstance(error, (*BUSY, errors.LockNotAvailable)):
        return DatabaseAway(f"the database is busy, say it again: {first_line(error)}")
    if isinstance(error, errors.QueryCanceled):
        return DatabaseAway(
            "the database cut the statement off: its timeout for this role was reached"
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return DatabaseAway(
            f"this server only reads, after a failover perhaps: {first_line(error)}"
        )
    if no_such_role(error):
        return Refused(f"the database refuses the login: {first_line(error)}")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseAway(f"the database is away: {first_line(error)}")
    if code.startswith(("22", "23")):
        return Refused(f"the database refuses a value ({type(error).__name__})")
    return OperatorError(
        f"the database refuses ({code or type(error).__name__}): {first_line(error)}"
    )


def first_line(error: psycopg.Error) -> str:
    """The primary message: no DETAIL, CONTEXT or hint, which quote rows."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(text.split("\n", 1)[0].split())[:300]
