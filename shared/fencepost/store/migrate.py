"""Bring the schema up to date: numbered SQL files, each in a transaction of its own, told in `fencepost.migration`.

Safe to start twice at once and through a transaction-mode pooler: all that lasts longer than a statement (turn, role,
timeouts) ends with its transaction. Migrations only expand: the code of the release before goes on running meanwhile.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from fencepost.core.version import CODE_VERSION

SCHEMA = Path(__file__).parent / "schema"
QUERIES = Path(__file__).parent / "queries"
SERVER_OLDEST, SERVER_NEWEST = 15, 18
TURN_TIMEOUT_SECONDS = 120.0  # for another migrator's file; longer than any file should take
LOCK_TRIES = 5  # each lets the traffic that it stopped go by before the next


class MigrationError(Exception):
    """The schema was not brought up to date; files already applied stay applied. One line."""


class ServerUnsuitable(MigrationError):
    """Fencepost cannot live on this server or in this database."""


class DatabaseNewer(MigrationError):
    """The database holds a file that this code does not know: this code is older than the database."""


class MigrationBusy(MigrationError):
    """Other transactions held what a file needs for longer than it waits. Nothing of it was applied: try again."""


class MigrationFailed(MigrationError):
    """The server refused a file. Nothing of it was applied."""


class State(StrEnum):
    """What this database knows of a file."""

    APPLIED = "applied"
    PENDING = "pending"
    CHANGED = "changed"  # applied, but with another content than the file has now
    UNKNOWN = "unknown"  # applied, but this code has no such file


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A numbered file; `name` without its suffix, `sha256` of its content (of what was applied where unknown)."""

    name: str
    sha256: str
    state: State


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
    """
    _refuse_unsuitable(connection)
    if dry_run:
        return [migration.name for migration in pending(connection, schema=schema)]
    _transact(connection, lambda: _prepare(connection, schema), lock_timeout_seconds, "owner")
    applied = [
        file.stem for file in _files(schema) if _apply(connection, file, lock_timeout_seconds)
    ]
    _transact(connection, lambda: _grant(connection, schema), lock_timeout_seconds, "roles")
    return applied


def check(connection: psycopg.Connection[Any], *, schema: Path = SCHEMA) -> list[Migration]:
    """Every file this code or this database knows, by name, with its state. Reads only."""
    with _one_line("check"), connection.transaction():
        return _compare(schema, _applied(connection))


def pending(connection: psycopg.Connection[Any], *, schema: Path = SCHEMA) -> list[Migration]:
    """The files `migrate` would apply now, in order. Reads only. Raises `DatabaseNewer`."""
    found = check(connection, schema=schema)
    _refuse_unknown(found)
    return [migration for migration in found if migration.state is State.PENDING]


def boundary_missing(connection: psycopg.Connection[Any]) -> list[str]:
    """What is missing of the boundary between the roles, a sentence each; empty where it is whole."""
    with _one_line("boundary"), connection.transaction():
        return [sentence for (sentence,) in _ask(connection, "migrate_boundary")]


def _files(schema: Path) -> list[Path]:
    return sorted(schema.glob("[0-9][0-9][0-9]_*.sql"))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _apply(connection: psycopg.Connection[Any], file: Path, lock_timeout_seconds: float) -> bool:
    """Whether this call applied it: another migrator may have been first."""
    content = file.read_bytes()

    def transaction() -> bool:
        applied = _applied(connection)
        _refuse_unknown(_compare(file.parent, applied))
        if file.stem in applied:
            return False
        _ask(connection, "migrate_owner")
        _run(connection, content)
        _run(connection, (file.parent / "grants.sql").read_bytes())
        told = {"file": file.stem, "sha256": _hash(content), "code_version": CODE_VERSION}
        _run(connection, _query("migrate_record"), told)
        return True

    return _transact(connection, transaction, lock_timeout_seconds, file.stem)


def _prepare(connection: psycopg.Connection[Any], schema: Path) -> bool:
    """The schema, its owner and the ledger."""
    if _ask(connection, "migrate_known") != [(None,)]:
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


def _compare(schema: Path, applied: Mapping[str, str]) -> list[Migration]:
    here = {file.stem: _hash(file.read_bytes()) for file in _files(schema)}
    return [
        Migration(name=name, sha256=here.get(name, applied.get(name, "")), state=state)
        for name in sorted(here.keys() | applied.keys())
        for state in [_state(here.get(name), applied.get(name))]
    ]


def _state(here: str | None, applied: str | None) -> State:
    if here is None:
        return State.UNKNOWN
    if applied is None:
        return State.PENDING
    return State.APPLIED if here == applied else State.CHANGED


def _refuse_unknown(found: Iterable[Migration]) -> None:
    unknown = [migration.name for migration in found if migration.state is State.UNKNOWN]
    if unknown:
        raise DatabaseNewer(
            f"the database holds {', '.join(unknown)}, which this code (version {CODE_VERSION}) does not know: "
            "it is older than the database"
        )


def _refuse_unsuitable(connection: psycopg.Connection[Any]) -> None:
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise ServerUnsuitable("migrate needs a connection that is not in a transaction")
    with _one_line("server"), connection.transaction():
        [(number, version, isolation, recovery, encoding, database)] = _ask(
            connection, "migrate_server"
        )
    if not SERVER_OLDEST <= number // 10000 <= SERVER_NEWEST:
        raise ServerUnsuitable(
            f"PostgreSQL {version} is not supported: Fencepost needs {SERVER_OLDEST} to {SERVER_NEWEST}"
        )
    if recovery:
        raise ServerUnsuitable("this server is a read-only replica: migrate the writable one")
    if isolation != "read committed":
        raise ServerUnsuitable(
            f"default_transaction_isolation is {isolation} in database {database}: "
            "Fencepost needs read committed, or its waits would end in serialization failures"
        )
    if encoding != "UTF8":
        raise ServerUnsuitable(
            f"database {database} is encoded in {encoding}: Fencepost needs UTF8"
        )


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
