"""`fencepost bind`: whose database this is."""

from typing import Annotated

import typer

from fencepost_cli.database import operator
from fencepost_cli.option import DatabaseUrl, Json
from fencepost_cli.output import print_json, print_line

Name = Annotated[
    str, typer.Argument(help="The installation: production, staging, …", metavar="NAME")
]
Force = Annotated[
    bool, typer.Option("--force", help="Bind a database that is bound to another installation.")
]


def bind(
    name: Name, force: Force = False, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """Bind the database to an installation. A run whose FENCEPOST_INSTALLATION differs refuses to start."""
    with operator(database_url) as database:
        answer = database.bind(name, force=force)
    if json:
        print_json({"installation": name, "answer": answer})
    else:
        print_line(f"{name}: {answer}")
