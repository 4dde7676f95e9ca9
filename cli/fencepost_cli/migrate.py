"""`fencepost migrate`: the schema, up to date."""

from typing import TYPE_CHECKING, Annotated

import typer

from fencepost_cli.database import operator
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line

if TYPE_CHECKING:
    from fencepost.store.migration import Migration

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
        changed = [] if dry_run else _changed(database.migrations.check())
    if json:
        told = {"dry_run": dry_run, "applied": names, "boundary_missing": missing}
        print_json({**told, "changed": changed})
    else:
        verb = "would apply" if dry_run else "applied"
        for name in names:
            print_line(f"{verb} {name}")
        if not (names or changed):
            print_line("up to date")
        for sentence in missing:
            print_line(f"boundary: {sentence}")
    if changed:
        raise CommandFailed(
            f"applied here with another content than this code has, and left as it is: {', '.join(changed)}",
            ExitCode.CHECK,
        )


def _changed(files: "list[Migration]") -> list[str]:
    return [file.name for file in files if file.state.value == "changed"]


def _check(database_url: str | None, json: bool) -> None:
    with operator(database_url) as database:
        files = database.migrations.check()
    odd = [file for file in files if file.state.value != "applied"]
    if json:
        states = [{"name": file.name, "state": file.state.value} for file in files]
        print_json({"up_to_date": not odd, "migrations": states})
    else:
        for file in odd:
            print_line(f"{file.name}: {file.state.value}")
        if not odd:
            print_line("up to date")
    if odd:
        raise typer.Exit(ExitCode.CHECK)
