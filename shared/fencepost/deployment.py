"""The deploy step: the schema brought up to date, and CloudFormation told, whatever happens."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, assert_never

from msgspec import Struct

from fencepost.core.deployment import (
    Apply,
    DeploymentInvalid,
    LeaveAlone,
    Refuse,
    Standing,
    Wanted,
    next_step,
    read_wanted,
)
from fencepost.core.line import Level, Line
from fencepost.core.operation import OperatorError
from fencepost.core.stack_event import (
    Change,
    StackAnswer,
    StackEvent,
    answer_body,
    read_stack_event,
)
from fencepost.ports import AccessUnavailable
from fencepost.settings import SettingsError
from fencepost.telemetry import Lines

ANSWER_SECONDS = 12.0  # kept for the answer: it may have to be said three times
NAMES_SHOWN = 20
EXPECTED = (OperatorError, DeploymentInvalid, SettingsError, AccessUnavailable)
UNEXPECTED = "the deploy step failed in a way nobody foresaw: see the log of MigrateFunction"


class Schema(Protocol):
    """The database as the deploy step sees it. Raises `OperatorError`."""

    def standing(self) -> Standing: ...
    def apply(self, installation: str) -> list[str]: ...
    def boundary_missing(self) -> list[str]: ...


class DeployFailed(Exception):
    """The schema is not as the new code needs it: one line."""


class Deployment(Struct, frozen=True, kw_only=True):
    """`open_schema` takes the seconds there are; `answer` the URL, the body and the seconds.

    Both readers of settings may raise `SettingsError`, which is answered too."""

    installation: Callable[[], str]
    open_schema: Callable[[float], AbstractContextManager[Schema]]
    answer: Callable[[str, bytes, float], None]
    lines: Lines

    def step(self, event: Mapping[str, Any], remaining_seconds: float) -> dict[str, object]:
        """What was done, in plain JSON values. For CloudFormation the answer is PUT, also where it failed.

        Invoked by hand, a failure is raised: `DeployFailed`.
        """
        asked = read_stack_event(event)
        within = remaining_seconds - ANSWER_SECONDS
        if asked is None:
            return self._done(event, within)
        answer = self._answer(asked, within)
        self._put(asked, answer)
        return {"succeeded": answer.succeeded, "reason": answer.reason, **answer.told}

    def _put(self, asked: StackEvent, answer: StackAnswer) -> None:
        level = Level.INFO if answer.succeeded else Level.ERROR
        self.lines(Line(level, "deploy_step_answered", {"reason": answer.reason}))
        self.answer(asked.response_url, answer_body(asked, answer), ANSWER_SECONDS)

    def _answer(self, asked: StackEvent, within_seconds: float) -> StackAnswer:
        if asked.change is Change.DELETE:
            return StackAnswer(succeeded=True, reason="the schema and all it holds stay")
        try:
            done = self._done(asked.properties, within_seconds)
        except DeployFailed as failed:
            return StackAnswer(succeeded=False, reason=str(failed))
        except BaseException:
            self._put(asked, StackAnswer(succeeded=False, reason=UNEXPECTED))
            raise
        told = {"Applied": _names(done["applied"]), "Boundary": _names(done["boundary_missing"])}
        return StackAnswer(succeeded=True, reason=str(done["did"]), told=told)

    def _done(self, properties: Mapping[str, Any], within_seconds: float) -> dict[str, object]:
        try:
            wanted = read_wanted(self.installation(), properties)
            with self.open_schema(within_seconds) as schema:
                return self._do(schema, wanted)
        except EXPECTED as error:
            raise DeployFailed(str(error)) from None

    def _do(self, schema: Schema, wanted: Wanted) -> dict[str, object]:
        step = next_step(schema.standing(), wanted)
        match step:
            case Refuse(why=why):
                raise DeployFailed(why)
            case LeaveAlone(why=why):
                return self._told(why, [], schema.boundary_missing())
            case Apply():
                applied = schema.apply(wanted.installation)
                did = f"applied {_names(applied)}" if applied else "up to date"
                return self._told(did, applied, schema.boundary_missing())
            case _:
                assert_never(step)

    def _told(self, did: str, applied: list[str], missing: list[str]) -> dict[str, object]:
        done: dict[str, object] = {"did": did, "applied": applied, "boundary_missing": missing}
        level = Level.WARNING if missing else Level.INFO
        self.lines(Line(level, "deploy_step_done", done))
        return done


def _names(names: Any) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
