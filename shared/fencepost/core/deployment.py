"""What the deploy step does about the schema, decided from how the database stands. Pure.

Migrations only expand, and the release before goes on running meanwhile: so the schema goes up before the new code
does, and never comes down. An older release that is put back (a rollback) finds a newer database and leaves it alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

CONNECTIONS_A_RUN = 1
CONNECTIONS_A_BACKFILL = 2  # its commands', and its run's where it drains
CONNECTIONS_TO_MIGRATE = 1
CONNECTIONS_A_CALLBACK = 1


class DeploymentInvalid(ValueError):
    """A property of the deploy step is wrong: one sentence naming it."""


class Mode(StrEnum):
    """Whether the deploy step may change the schema."""

    APPLY = "apply"
    CHECK = "check"  # somebody else applies; the deploy is refused until it is done


class Standing(Struct, frozen=True, kw_only=True):
    """How the database stands. `bound_to` None: nobody's yet. `newer`: files of a later release. `changed`: edited
    after they were applied here."""

    bound_to: str | None
    pending: tuple[str, ...]
    newer: tuple[str, ...]
    changed: tuple[str, ...] = ()


class Concurrency(Struct, frozen=True, kw_only=True):
    """How much may go on at once, and how many connections the database grants to all of it."""

    runs: int
    backfills: int
    connections_max: int
    callbacks: int = 0

    @property
    def connections(self) -> int:
        """What all of it holds when everything goes on at once."""
        runs = self.runs * CONNECTIONS_A_RUN
        others = self.callbacks * CONNECTIONS_A_CALLBACK + CONNECTIONS_TO_MIGRATE
        return runs + self.backfills * CONNECTIONS_A_BACKFILL + others


class Wanted(Struct, frozen=True, kw_only=True):
    """What the deploy step is asked for."""

    installation: str
    mode: Mode = Mode.APPLY
    concurrency: Concurrency | None = None


class Apply(Struct, frozen=True):
    """Bring the schema up to date, and bind the database if it is nobody's."""


class LeaveAlone(Struct, frozen=True):
    """There is nothing to do, and why."""

    why: str


class Refuse(Struct, frozen=True):
    """The deploy must not go on, and why."""

    why: str


Step = Apply | LeaveAlone | Refuse


def next_step(standing: Standing, wanted: Wanted) -> Step:
    """Most dangerous first: another installation's database is never touched."""
    if standing.bound_to not in (None, wanted.installation):
        return Refuse(
            f"this database belongs to installation {standing.bound_to}, "
            f"and FENCEPOST_INSTALLATION is {wanted.installation}"
        )
    if standing.newer:
        files = ", ".join(standing.newer)
        return LeaveAlone(f"the database is newer than this code ({files}): nothing to do")
    if standing.changed:
        files = ", ".join(standing.changed)
        return Refuse(f"edited after it was applied here: {files}; put the file back as it was")
    if why := _too_many_connections(wanted.concurrency):
        return Refuse(why)
    if wanted.mode is Mode.APPLY:
        return Apply()
    return _checked(standing)


def _checked(standing: Standing) -> Step:
    if standing.pending:
        files = ", ".join(standing.pending)
        return Refuse(f"not applied yet: {files}; run fencepost migrate, then deploy again")
    if standing.bound_to is None:
        return Refuse("this database is bound to no installation yet: run fencepost bind")
    return LeaveAlone("up to date")


def _too_many_connections(concurrency: Concurrency | None) -> str | None:
    if concurrency is None or concurrency.connections <= concurrency.connections_max:
        return None
    calls = f", CallbackConcurrency ({concurrency.callbacks})" if concurrency.callbacks else ""
    return (
        f"OverlapMax ({concurrency.runs}){calls} and BackfillConcurrency ({concurrency.backfills}) may hold "
        f"{concurrency.connections} connections at once, more than ConnectionsMax ({concurrency.connections_max})"
    )


def read_wanted(installation: str, properties: Mapping[str, Any]) -> Wanted:
    """From the properties of the custom resource, or of an event by hand. Raises `DeploymentInvalid`."""
    said = str(properties.get("Mode", Mode.APPLY))
    if said not in list(Mode):
        raise DeploymentInvalid(f"Mode is {said[:40]!r}; it is apply or check")
    return Wanted(installation=installation, mode=Mode(said), concurrency=_concurrency(properties))


def _concurrency(properties: Mapping[str, Any]) -> Concurrency | None:
    names = ("OverlapMax", "BackfillConcurrency", "ConnectionsMax")
    if not set(names) & set(properties):
        return None
    runs, backfills, connections_max = (_number(properties, name) for name in names)
    callbacks = _number({"CallbackConcurrency": 0, **properties}, "CallbackConcurrency")
    return Concurrency(
        runs=runs, backfills=backfills, connections_max=connections_max, callbacks=callbacks
    )


def _number(properties: Mapping[str, Any], name: str) -> int:
    """CloudFormation makes text of every number."""
    try:
        return int(properties[name])
    except (KeyError, TypeError, ValueError):
        raise DeploymentInvalid(f"{name} is missing or no number") from None
