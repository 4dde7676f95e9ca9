"""Bring the schema up to date: numbered SQL files, each in a transaction of its own, told in `fencepost.migration`.

Safe to start twice at once and through a transaction-mode pooler: all that lasts longer than a statement (turn, role,
timeouts) ends with its transaction. Migrations only expand: the code of the release before goes on running meanwhile.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from fencepost.core.version import CODE_VERSION
from fencepost.store.migration import (
    DatabaseNewer,
    FileChanged,
    Migration,
    MigrationBusy,
    MigrationError,
    MigrationFailed,
    Server,
    ServerUnsuitable,
    State,
    compare,
    files,
    hash_of,
    refuse_odd,
    unsuitable,
)

__all__ = [
    "migrate",
    "check",
    "pending",
    "boundary_missing",
    "Migration",
    "State",
    "MigrationError",
    "MigrationBusy",
    "MigrationFailed",
    "ServerUnsuitable",
    "DatabaseNewer",
    "FileChanged",
]

SCHEMA = Path(__file__).parent / "schema"
QUERIES = Path(__file__).parent / "queries"
TURN_TIMEOUT_SECONDS = 120.0  # for another migrator's file; longer than any file should take
LOCK_TRIES = 5  # each lets the traffic that it stopped go by before the next


def migrate(
    connection: psycopg.Connection[Any],
    *,
    dry_run: bool = False,
    lock_timeout_seconds: float = 3.0,
    schema: Path = SCHEMA,
) -> list[str]:
    """Apply what is pending and answer its names; with `dry_run` only name it.

    The connection must be outside a transaction. A file waits for locks for `lock_timeout_seconds` at most, so that it
    never queues behind traffic (and traffic behind it) for longer; it is tried 5 times. Raises `MigrationError`.
    Where a file was edited after it was applied here, nothing is done at all.
    """
    _refuse_unsuitable(connection)
    if dry_run:
        return [migration.name for migration in pending(connection, schema=schema)]
    _transact(connection, lambda: _prepare(connection, schema), lock_timeout_seconds, "owner")
    applied = [
        file.stem for file in files(schema) if _apply(connection, file, lock_timeout_seconds)
    ]
    _transact(connection, lambda: _grant(connection, schema), lock_timeout_seconds, "roles")
    return applied


def check(connection: psycopg.Connection[Any], *, schema: Path = SCHEMA) -> list[Migration]:
    """Every file this code or this database knows, by name, with its state. Reads only."""
    with _one_line("check"), connection.transaction():
        return compare(schema, _applied(connection))


def pending(connection: psycopg.Connection[Any], *, schema: Path = SCHEMA) -> list[Migration]:
    """The files `migrate` would apply now, in order. Reads only. Raises `DatabaseNewer`, `FileChanged`."""
    found = check(connection, schema=schema)
    refuse_odd(found)
    return [migration for migration in found if migration.state is State.PENDING]


def boundary_missing(connection: psycopg.Connection[Any]) -> list[str]:
    """What is missing of the boundary between the roles, a sentence each; empty where it is whole."""
    with _one_line("boundary"), connection.transaction():
        return [sentence for (sentence,) in _ask(connection, "migrate_boundary")]


def _apply(connection: psycopg.Connection[Any], file: Path, lock_timeout_seconds: float) -> bool:
    """Whether this call applied it: another migrator may have been first."""
    content = file.read_bytes()

    def transaction() -> bool:
        applied = _applied(connection)
        refuse_odd(compare(file.parent, applied))
        if file.stem in applied:
            return False
        _ask(connection, "migrate_owner")
        _run(connection, content)
        _run(connection, (file.parent / "grants.sql").read_bytes())
        told = {"file": file.stem, "sha256": hash_of(content), "code_version": CODE_VERSION}
        _run(connection, _query("migrate_record"), told)
        return True

    return _transact(connection, transaction, lock_timeout_seconds, file.stem)


def _prepare(connection: psycopg.Connection[Any], schema: Path) -> bool:
    """The schema, its owner and the ledger; where they are there, its first look at what they say."""
    if _ask(connection, "migrate_known") != [(None,)]:
        refuse_odd(compare(schema, _applied(connection)))
        return False
    _run(connection, (schema / "owner.sql").read_bytes())
    _ask(connection, "migrate_owner")
    _run(connection, (schema / "ledger.sql").read_bytes())
    return True


def _grant(connection: psycopg.Connection[Any], schema: Path) -> bool:
    _run(connection, (schema / "roles.sql").read_bytes())
    _ask(connection, "migrate_owner")
    _run(connection, (schema / "grants.sql").read_bytes())
    return True


def _transact(
    connection: psycopg.Connection[Any],
    transaction: Callable[[], bool],
    lock_timeout_seconds: float,
    name: str,
) -> bool:
    """Take the turn, then the short lock timeout, then do it; again when traffic held what it needs."""
    for _ in range(LOCK_TRIES):
        try:
            with _one_line(name), connection.transaction():
                _take_turn(connection)
                _limit(connection, lock_timeout_seconds)
                return transaction()
        except MigrationBusy:
            continue
    raise MigrationBusy(
        f"{name}: other transactions held what it needs ({LOCK_TRIES} tries of {lock_timeout_seconds:g} s); "
        "nothing of it was applied, try again"
    )


def _take_turn(connection: psycopg.Connection[Any]) -> None:
    _limit(connection, TURN_TIMEOUT_SECONDS)
    try:
        _ask(connection, "migrate_turn")
    except psycopg.errors.LockNotAvailable:
        raise MigrationFailed(
            f"another migration has been under way for more than {TURN_TIMEOUT_SECONDS:g} s"
        ) from None


def _limit(connection: psycopg.Connection[Any], seconds: float) -> None:
    _ask(connection, "migrate_limits", {"lock_timeout": f"{int(seconds * 1000)}ms"})


def _applied(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """File and hash of what this database says was applied."""
    if _ask(connection, "migrate_known") == [(None,)]:
        return {}
    return dict(_ask(connection, "migrate_applied"))


def _refuse_unsuitable(connection: psycopg.Connection[Any]) -> None:
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise ServerUnsuitable("migrate needs a connection that is not in a transaction")
    with _one_line("server"), connection.transaction():
        [row] = _ask(connection, "migrate_server")
    told: list[Any] = [  # in SQL_ASCII the driver reads text as bytes
        value.decode() if isinstance(value, bytes) else value for value in row
    ]
    if why := unsuitable(Server(*told)):
        raise ServerUnsuitable(why)


def _query(name: str) -> bytes:
    return (QUERIES / f"{name}.sql").read_bytes()


def _ask(
    connection: psycopg.Connection[Any], name: str, values: Mapping[str, Any] | None = None
) -> list[TupleRow]:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return cursor.execute(_query(name), values, prepare=False).fetchall()


def _run(
    connection: psycopg.Connection[Any], content: bytes, values: Mapping[str, Any] | None = None
) -> None:
    with psycopg.Cursor(connection) as cursor:
        cursor.execute(content, values, prepare=False)


@contextlib.contextmanager
def _one_line(name: str) -> Iterator[None]:
    """The server's errors as ours: what was being done, and the first line of what the server said."""
    try:
        yield
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise MigrationBusy(f"{name}: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise MigrationFailed(f"{name}: {_first_line(error)}") from error


def _first_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error)
    return (said.splitlines() or ["no reason given"])[0]
