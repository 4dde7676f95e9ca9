"""Nothing of ours stays on an engine: the containers and layer images that SAM makes are gone at the end."""

import contextlib
from collections.abc import Iterator

from rig.sam.engine import Engine

CONTAINERS = [
    "ps",
    "--all",
    "--quiet",
    "--no-trunc",
    "--filter",
    "label=sam.cli.container.type=lambda",
]
IMAGES = ["images", "--quiet", "--no-trunc", "samcli/lambda-python"]


@contextlib.contextmanager
def nothing_left(engine: Engine) -> Iterator[None]:
    containers, images = _names(engine, CONTAINERS), _names(engine, IMAGES)
    try:
        yield
    finally:
        if left := _names(engine, CONTAINERS) - containers:
            engine.docker("rm", "--force", *left)
        if left := _names(engine, IMAGES) - images:
            engine.docker("rmi", "--force", *left)


def _names(engine: Engine, command: list[str]) -> set[str]:
    return set(engine.docker(*command).split())
