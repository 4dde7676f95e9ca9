"""`fencepost migrate`: the schema, up to date."""

from typing import Annotated

import typer

from fencepost_cli.database import operator
from fencepost_cli.exit_code import ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line

Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Change nothing; exit code 4 unless everything is applied unchanged."
    ),
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Change nothing; name what would be applied.")]


def migrate(
    check: Check = False, dry_run: Dry = False, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """Bring the schema up to date. Safe to run twice, or twice at once; the running version goes on meanwhile."""
    if check and dry_run:
        raise typer.BadParameter("say --check or --dry-run, not both")
    if check:
        return _check(database_url, json)
    return _apply(database_url, json, dry_run=dry_run)


def _apply(database_url: str | None, json: bool, *, dry_run: bool) -> None:
    with operator(database_url) as database:
        names = database.migrations.apply(dry_run=dry_run)
        missing = [] if dry_run else database.migrations.boundary_missing()
    if json:
        print_json({"dry_run": dry_run, "applied": names, "boundary_missing": missing})
        return
    verb = "would apply" if dry_run else "applied"
    _print([f"{verb} {name}" for name in names], missing)


def _check(database_url: str | None, json: bool) -> None:
    with operator(database_url) as database:
        files = database.migrations.check()
        odd = [file for file in files if file.state.value != "applied"]
        missing = [] if odd else database.migrations.boundary_missing()
    if json:
        states = [{"name": file.name, "state": file.state.value} for file in files]
        print_json({"up_to_date": not odd, "migrations": states, "boundary_missing": missing})
    else:
        _print([f"{file.name}: {file.state.value}" for file in odd], missing)
    if odd:
        raise typer.Exit(ExitCode.CHECK)


def _print(files: list[str], missing: list[str]) -> None:
    for line in files or ["up to date"]:
        print_line(line)
    for sentence in missing:
        print_line(f"boundary: {sentence}")
