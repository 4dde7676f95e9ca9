"""What a migration is, what a database may know of it, and what server it can be applied to. No database here."""

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from fencepost.core.version import CODE_VERSION

SERVER_OLDEST, SERVER_NEWEST = 15, 18


class MigrationError(Exception):
    """The schema was not brought up to date; files already applied stay applied. One line."""


class ServerUnsuitable(MigrationError):
    """Fencepost cannot live on this server or in this database."""


class DatabaseNewer(MigrationError):
    """The database holds a file that this code does not know: this code is older than the database."""


class FileChanged(MigrationError):
    """A file was edited after it was applied here: what stands in the database and in the code are two things."""


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


class Migration(Struct, frozen=True, kw_only=True):
    """A numbered file; `name` without its suffix, `sha256` of its content (of what was applied where unknown)."""

    name: str
    sha256: str
    state: State


def files(schema: Path) -> list[Path]:
    return sorted(schema.glob("[0-9][0-9][0-9]_*.sql"))


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def compare(schema: Path, applied: Mapping[str, str]) -> list[Migration]:
    here = {file.stem: hash_of(file.read_bytes()) for file in files(schema)}
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


def refuse_odd(found: Sequence[Migration]) -> None:
    """Raises where code and database do not speak of the same files: `DatabaseNewer`, `FileChanged`."""
    unknown, changed = (_of(found, state) for state in (State.UNKNOWN, State.CHANGED))
    if unknown:
        raise DatabaseNewer(
            f"the database holds {', '.join(unknown)}, which this code (version {CODE_VERSION}) does not know: "
            "it is older than the database"
        )
    if changed:
        raise FileChanged(
            f"edited after it was applied here: {', '.join(changed)}; migrate refuses: put the file back as it was, "
            "and say what is new in a file of its own"
        )


def _of(found: Sequence[Migration], state: State) -> list[str]:
    return [migration.name for migration in found if migration.state is state]


class Server(NamedTuple):
    """The columns of queries/migrate_server.sql."""

    number: int  # 150018
    version: str
    isolation: str
    replica: bool
    encoding: str
    database: str


def unsuitable(server: Server) -> str | None:
    """Why Fencepost cannot live here, in one sentence; None: it can. Pure."""
    if not SERVER_OLDEST <= server.number // 10000 <= SERVER_NEWEST:
        return (
            f"PostgreSQL {server.version} is not supported: "
            f"Fencepost needs {SERVER_OLDEST} to {SERVER_NEWEST}"
        )
    if server.replica:
        return "this server is a read-only replica: migrate the writable one"
    if server.isolation != "read committed":
        return (
            f"default_transaction_isolation is {server.isolation} in database {server.database}: "
            "Fencepost needs read committed, or its waits would end in serialization failures"
        )
    if server.encoding != "UTF8":
        return f"database {server.database} is encoded in {server.encoding}: Fencepost needs UTF8"
    return None
