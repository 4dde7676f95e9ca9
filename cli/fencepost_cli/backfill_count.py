"""How much a command of `fencepost backfill` means, without doing it."""

from fencepost.core.command import Select
from fencepost.core.notification import Kind
from fencepost.core.operation import Selector
from fencepost_cli import backfill_message as message
from fencepost_cli.backfill_way import Way
from fencepost_cli.database import operator
from fencepost_cli.exit_code import CommandFailed, ExitCode
from fencepost_cli.output import print_json, print_line


def would(name: str, count: int, json: bool) -> None:
    """The answer of a dry run."""
    if json:
        print_json({"dry_run": True, "would": name, "count": count})
    else:
        print_line(f"would {name} {count}")


def meant(way: Way, selector: Selector) -> int:
    """How many a selector means now."""
    if not way.database_url:
        raise CommandFailed(
            "counting needs the database: say --database-url, or --yes", ExitCode.USAGE
        )
    if Kind.DELIVERED not in selector.kinds:
        with operator(way.database_url) as database:
            return sum(len(page) for page in database.pages(selector))
    with message.command_store(way.database_url) as commands:
        select = Select(channel=selector.channel, since=selector.since, until=selector.until)
        return sum(commands.count_delivered(select))


def due(database_url: str | None) -> int:
    with operator(database_url) as database:
        return sum(row.due for row in database.status())
