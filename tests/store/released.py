"""What the code of a release says to the database, recorded, so that later schemas can be held to it.

    python -m tests.store.released     writes tests/store/released/VERSION.json, and VERSION.sha256 of the schema's
                                       numbered files, of the version in pyproject.toml

Those of the version being made are written anew whenever its words or its files change; from the day it is released
they stay, and so do the files: what is new in the schema is then a new file.

A record lives as long as its release may still run beside a newer one: until the release after the next.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from fencepost.core.version import CODE_VERSION
from fencepost.store.migrate import QUERIES, SCHEMA, migrate
from fencepost.store.migration import files, hash_of
from rig.postgres import local_postgres

RECORDS = Path(__file__).parent / "released"
OF_A_MIGRATOR = (
    "migrate_"  # said by a deploy of its own release, before it: never beside a newer schema
)
CALLABLE = """
select g.rolname, p.oid::regprocedure::text, pg_get_function_result(p.oid)
  from pg_proc p, pg_roles g
 where p.pronamespace = 'fencepost'::regnamespace and g.rolname like 'fencepost\\_%' and g.rolname <> 'fencepost_owner'
   and has_function_privilege(g.oid, p.oid, 'execute')
 order by 1, 2"""
LABELS = """
select t.typname, array_agg(e.enumlabel::text order by e.enumsortorder)
  from pg_type t join pg_enum e on e.enumtypid = t.oid
 where t.typnamespace = 'fencepost'::regnamespace group by 1 order by 1"""


@dataclass(frozen=True)
class Release:
    """`statements`: file → its text and the columns of its answer. `callable`: role → function → result."""

    code_version: int
    statements: Mapping[str, Mapping[str, Any]]
    callable: Mapping[str, Mapping[str, str]]
    labels: Mapping[str, list[str]]  # of the enumerations: an answer may hold any of them


def version_being_made() -> str:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def releases() -> dict[str, Release]:
    return {
        file.stem: Release(**json.loads(file.read_text()))
        for file in sorted(RECORDS.glob("*.json"))
    }


def hashes_now() -> dict[str, str]:
    """Of the files that `migrate` applies once."""
    return {file.name: hash_of(file.read_bytes()) for file in files(SCHEMA)}


def hashes_of(version: str) -> dict[str, str]:
    """As they were recorded, in the way of sha256sum."""
    lines = (RECORDS / f"{version}.sha256").read_text().splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


def said_now(connection: psycopg.Connection[Any]) -> Release:
    """What this code says to this database."""
    texts = {
        file.stem: file.read_text()
        for file in sorted(QUERIES.glob("*.sql"))
        if not file.stem.startswith(OF_A_MIGRATOR)
    }
    return Release(
        code_version=CODE_VERSION,
        statements={
            name: {"text": text, "columns": columns(connection, text)}
            for name, text in texts.items()
        },
        callable=callable_by_role(connection),
        labels=labels_of(connection),
    )


def callable_by_role(connection: psycopg.Connection[Any]) -> dict[str, dict[str, str]]:
    functions: dict[str, dict[str, str]] = {}
    for role, call, result in connection.execute(CALLABLE).fetchall():
        functions.setdefault(role, {})[call] = result
    return functions


def labels_of(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    return dict(connection.execute(LABELS).fetchall())


def columns(connection: psycopg.Connection[Any], text: str) -> list[list[str]]:
    """Name and type of each column of a statement's answer; the server reads it and does not run it.

    Raises ValueError with the server's reason where it cannot be read."""
    numbers: dict[str, str] = {}

    def number(found: "re.Match[str]") -> str:
        named = found[1] or f"place {found.start()}"
        return numbers.setdefault(named, f"${len(numbers) + 1}")

    query = re.sub(r"%(?:\((\w+)\))?[sb]", number, text).replace("%%", "%")
    for answer in (
        connection.pgconn.prepare(b"", query.encode()),
        described := connection.pgconn.describe_prepared(b""),
    ):
        if answer.error_message:
            raise ValueError(answer.error_message.decode().strip())
    found = [(described.fname(place), described.ftype(place)) for place in range(described.nfields)]
    return [[(name or b"").decode(), type_name(connection, oid)] for name, oid in found]


def type_name(connection: psycopg.Connection[Any], oid: int) -> str:
    (name,) = connection.execute("select format_type(%s, null)", [oid]).fetchone() or ("",)
    return str(name)


def broken(connection: psycopg.Connection[Any], release: Release) -> list[str]:
    """What code of this release would find changed in this database, a line each."""
    wrong = []
    for name, said in release.statements.items():
        try:
            now = columns(connection, said["text"])
        except ValueError as error:
            wrong.append(f"{name}: {error}")
            continue
        if now != said["columns"]:
            wrong.append(f"{name}: answers {now} instead of {said['columns']}")
    functions, labels = callable_by_role(connection), labels_of(connection)
    for role, calls in release.callable.items():
        for call, result in calls.items():
            if (found := functions.get(role, {}).get(call)) != result:
                wrong.append(f"{role}: {call} is {found} instead of {result}")
    for name, known in release.labels.items():
        if labels.get(name) != known:
            wrong.append(f"{name}: code of that release knows {known}, not {labels.get(name)}")
    return wrong


def main() -> None:
    version = version_being_made()
    with (
        local_postgres() as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        migrate(connection)
        record = json.dumps(asdict(said_now(connection)), indent=1, ensure_ascii=False)
    (RECORDS / f"{version}.json").write_text(record + "\n")
    hashes = "".join(f"{sha256}  {name}\n" for name, sha256 in hashes_now().items())
    (RECORDS / f"{version}.sha256").write_text(hashes)


if __name__ == "__main__":
    main()
