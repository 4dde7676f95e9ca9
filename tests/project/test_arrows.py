"""Who may import whom. The arrows are the architecture: what breaks one breaks this."""

import ast
import sys

import pytest

from tests.project.sources import Import, Source, imports, product

# The rooms, most particular first, and the rooms of ours each may import.
ROOMS = {
    "fencepost.core": {"fencepost.core"},
    "fencepost.store": {"fencepost.core", "fencepost.ports", "fencepost.store"},
    "fencepost.senders": {
        "fencepost.core",
        "fencepost.deadline",
        "fencepost.misfit",
        "fencepost.ports",
        "fencepost.senders",
    },
    "fencepost.ports": {"fencepost.core"},
    "fencepost.deadline": set[str](),  # time alone: whoever waits for a peer waits like this
    "fencepost.misfit": set[str](),  # whoever reads settings tells what is wrong in the same words
    "fencepost.attempt": {"fencepost.core", "fencepost.deadline", "fencepost.ports"},
    "fencepost.drive": {
        "fencepost.core",
        "fencepost.credentials",
        "fencepost.deadline",
        "fencepost.ports",
        "fencepost.attempt",
    },
    "fencepost.engine": {
        "fencepost.core",
        "fencepost.ports",
        "fencepost.attempt",
        "fencepost.drive",
    },
    "fencepost.settings": {"fencepost.core"},
    "fencepost.credentials": {"fencepost.core", "fencepost.ports", "fencepost.attempt"},
    "fencepost.secret_places": {"fencepost.ports", "fencepost.settings"},
    "fencepost.telemetry": {"fencepost.core", "fencepost.ports"},
    "fencepost.deployment": {
        "fencepost.core",
        "fencepost.ports",
        "fencepost.settings",
        "fencepost.telemetry",
    },
    "fencepost.backfill": {
        "fencepost.attempt",
        "fencepost.backfill",
        "fencepost.core",
        "fencepost.ports",
        "fencepost.telemetry",
    },
    "fencepost.scale_out": {"fencepost.core", "fencepost.ports"},
    "fencepost.callbacks": {"fencepost.core", "fencepost.ports", "fencepost.telemetry"},
    "fencepost.receipts": {
        "fencepost.attempt",
        "fencepost.core",
        "fencepost.deadline",
        "fencepost.ports",
    },
    "fencepost.worker": {
        "fencepost.core",
        "fencepost.ports",
        "fencepost.drive",
        "fencepost.engine",
        "fencepost.receipts",
        "fencepost.scale_out",
        "fencepost.settings",
        "fencepost.telemetry",
    },
    "fencepost.bootstrap": {
        "fencepost.backfill",
        "fencepost.callbacks",
        "fencepost.deployment",
        "fencepost.core",
        "fencepost.ports",
        "fencepost.receipts",
        "fencepost.scale_out",
        "fencepost.secret_places",
        "fencepost.senders",
        "fencepost.settings",
        "fencepost.store",
        "fencepost.telemetry",
        "fencepost.worker",
    },
    "fencepost": {"fencepost.store"},  # enqueue, loaded at first use
    "functions": {"fencepost.bootstrap"},
    "fencepost_cli": {
        "fencepost",
        "fencepost_cli",
        "fencepost.bootstrap",
        "fencepost.backfill",
        "fencepost.core",
        "fencepost.misfit",
        "fencepost.ports",
        "fencepost.settings",
        "fencepost.store",  # the operator's and the producer's side have no port: they are the database's
        "fencepost.telemetry",
        "fencepost.worker",
    },
}
# Who may use what is not ours. Lazily: inside a function, so that it is paid for only where it is needed.
ANYWHERE = {"msgspec", *sys.stdlib_module_names}
OUTSIDE = {
    "psycopg": {"fencepost.store"},
    "httpunk": {"fencepost.senders"},
    "cryptography": {"fencepost.senders"},
    "aiosmtplib": {"fencepost.senders"},
    "typer": {"fencepost_cli"},
    "click": {"fencepost_cli"},
    "rich": {"fencepost_cli"},
}
OUTSIDE_LAZILY = {
    "boto3": {"fencepost.senders", "fencepost.bootstrap", "fencepost.backfill"},
    "botocore": {"fencepost.senders", "fencepost.bootstrap", "fencepost.backfill"},
    "aws_lambda_powertools": {"fencepost.bootstrap", "fencepost.telemetry", "functions"},
}
# what values are made of: a dataclass costs four times as much to make, and its import too
VALUES = {"msgspec.Struct", "msgspec.field", "msgspec.structs.replace"}
IMPURE = {  # no clock, no chance, no input or output in the core
    "asyncio",
    "datetime",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "socket",
    "ssl",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
}


def room_of(module: str) -> str | None:
    return next((room for room in ROOMS if module == room or module.startswith(room + ".")), None)


def ours(source: Source) -> list[Import]:
    return [one for one in imports(source) if room_of(one.module)]


def foreign(source: Source) -> list[Import]:
    return [one for one in imports(source) if not room_of(one.module)]


def by_name(source: Source) -> str:
    return source.shown


@pytest.mark.parametrize("source", product(), ids=by_name)
def test_our_own_are_imported_along_the_arrows_only(source: Source) -> None:
    room = room_of(source.module)
    assert room is not None, f"{source.shown} stands in no room"
    wrong = [one.module for one in ours(source) if room_of(one.module) not in ROOMS[room]]
    assert not wrong, f"{room} may not import {wrong}"


@pytest.mark.parametrize("source", product(), ids=by_name)
def test_what_is_not_ours_is_imported_where_it_belongs(source: Source) -> None:
    room = room_of(source.module)
    for one in foreign(source):
        package = one.module.split(".")[0]
        if package in ANYWHERE:
            continue
        allowed = OUTSIDE.get(package, set()) | OUTSIDE_LAZILY.get(package, set())
        assert room in allowed, f"{source.shown} imports {one.module}"
        if package in OUTSIDE_LAZILY:
            assert one.for_types or not one.at_import, f"{source.shown} imports {package} eagerly"


@pytest.mark.parametrize("source", product(), ids=by_name)
def test_the_core_is_pure(source: Source) -> None:
    if room_of(source.module) != "fencepost.core":
        return
    for one in foreign(source):
        if one.module in VALUES:
            continue
        assert one.module.split(".")[0] in sys.stdlib_module_names, f"{one.module} is not standard"
        impure = [name for name in IMPURE if f"{one.module}.".startswith(f"{name}.")]
        assert not impure or one.module in ("datetime.timedelta",), f"{source.shown}: {one.module}"
    called = {node.func for node in ast.walk(source.tree) if isinstance(node, ast.Call)}
    names = {function.id for function in called if isinstance(function, ast.Name)}
    assert not names & {"open", "print", "input", "exec", "eval"}, source.shown


@pytest.mark.parametrize("source", product(), ids=by_name)
def test_the_environment_is_read_in_settings_only(source: Source) -> None:
    if source.module == "fencepost.settings":
        return
    reads = [
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    ]
    assert not reads, f"{source.shown} reads the environment"


def test_every_arrow_is_used() -> None:
    """A permission nobody uses is a door left open."""
    used = {
        (room_of(source.module), room_of(one.module))
        for source in product()
        for one in ours(source)
    }
    unused = {
        (room, target)
        for room, targets in ROOMS.items()
        for target in targets
        if (room, target) not in used
    }
    assert not unused
