"""`make sam-local` itself: every event says what is expected of it, and what is expected can be missed."""

import hashlib
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fencepost.backfill.commands import read_command
from fencepost.backfill.wire import Wires
from fencepost.core.command import CommandRefused
from fencepost.senders.aws.event import callbacks_in
from fencepost.settings import read_settings
from rig.sam.__main__ import EVENTS, declared
from rig.sam.cli import interpreter_folder
from rig.sam.expected import ALWAYS, Expected, Found, differences, in_order
from rig.sam.ground import ENV_FILE, USERS
from tests.project.sources import ROOT
from tests.project.stack import functions, variables

ENVIRONMENTS: dict[str, dict[str, str]] = json.loads(ENV_FILE.read_text())
BATCHES = sorted(EVENTS.glob("sqs_*.json"))
EXPECTED = Expected(
    function="DeliverFunction",
    answer={
        "delivered": 2,
        "batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "2"}],
    },
    after={"open": 1},
    actions={"run_ended": 1},
)
FOUND = Found(
    answer={
        "delivered": 2,
        "more": 0,
        "batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "1"}],
    },
    log='START\n{"action": "run_ended"}\n[1]\n',
    account={**ALWAYS, "open": 1},
    secrets=("hush",),
)


def records(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text())["Records"]
    return found


def test_a_python_that_does_not_run_is_missed_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"python3\.13 on the PATH: there is none"):
        interpreter_folder()
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    with pytest.raises(RuntimeError, match="does not run"):
        interpreter_folder()
    shim.write_text("#!/bin/sh\nexit 0\n")
    assert interpreter_folder() == tmp_path


class TestEvents:
    def test_each_says_what_is_expected_of_it_by_which_function(self) -> None:
        expected = declared()
        assert {file.stem for file in EVENTS.glob("*.json")} == set(expected)
        assert {one.function for one in expected.values()} == set(functions())

    def test_no_expectation_is_left_without_its_event(self) -> None:
        assert {file.stem for file in (EVENTS / "expected").iterdir()} == set(declared())

    def test_each_is_judged_by_the_database(self) -> None:
        assert [name for name, one in declared().items() if not one.after] == []

    @pytest.mark.parametrize("file", BATCHES, ids=lambda file: file.stem)
    def test_a_batch_is_as_sqs_brings_it(self, file: Path) -> None:
        found = records(file)
        assert len({one["messageId"] for one in found}) == len(found)
        for one in found:
            assert one["md5OfBody"] == hashlib.md5(one["body"].encode()).hexdigest()
            assert one["eventSource"] == "aws:sqs"

    def test_every_command_there_is_has_its_event(self) -> None:
        said = set()
        for file in BATCHES:
            for one in records(file):
                try:
                    read_command(one["body"])
                except CommandRefused:
                    continue
                said.add(json.loads(one["body"])["command"])
        (union,) = [msgspec.inspect.type_info(Wires)]
        assert isinstance(union, msgspec.inspect.UnionType)
        known = {one.tag for one in union.types if isinstance(one, msgspec.inspect.StructType)}
        assert said == known

    @pytest.mark.parametrize("file", BATCHES, ids=lambda file: file.stem)
    def test_what_fails_are_the_bodies_that_are_no_commands(self, file: Path) -> None:
        bad = []
        for one in records(file):
            if callbacks_in(one["body"]) is not None:
                continue
            try:
                read_command(one["body"])
            except CommandRefused:
                bad.append(one["messageId"])
        failures = declared()[file.stem].answer["batchItemFailures"]
        assert sorted(one["itemIdentifier"] for one in failures) == sorted(bad)


class TestEnvironment:
    def test_every_function_has_its_variables_and_its_own_user(self) -> None:
        assert set(ENVIRONMENTS) == set(USERS) == set(functions())

    @pytest.mark.parametrize("function", ENVIRONMENTS)
    def test_it_names_what_the_template_names(self, function: str) -> None:
        """SAM passes nothing else; and what it cannot resolve it passes empty."""
        left_out = {"POWERTOOLS_LOG_LEVEL", "TZ", "FENCEPOST_LINGER_SECONDS"}
        wanted = set(variables(functions()[function])) - left_out
        assert set(ENVIRONMENTS[function]) == wanted

    @pytest.mark.parametrize("function", ENVIRONMENTS)
    def test_the_settings_take_it(self, function: str) -> None:
        assert read_settings(ENVIRONMENTS[function]).installation == "local"

    @pytest.mark.parametrize("command", ["local_invoke", "local_start_lambda"])
    def test_no_invocation_looks_for_a_newer_image(self, command: str) -> None:
        config = tomllib.loads((ROOT / "samconfig.toml").read_text())
        assert config["default"][command]["parameters"] == {"skip_pull_image": True}


class TestJudging:
    def test_as_declared_is_no_difference(self) -> None:
        assert differences(EXPECTED, FOUND) == []

    @pytest.mark.parametrize(
        ("found", "sentence"),
        [
            (replace(FOUND, answer=None), "the function returned None"),
            (
                replace(FOUND, answer={**FOUND.answer, "delivered": 3}),
                "answer.delivered is 3, not 2",
            ),
            (
                replace(FOUND, answer={"errorType": "Boom", "errorMessage": "why"}),
                "the function failed: Boom: why",
            ),
            (replace(FOUND, account={**FOUND.account, "open": 2}), "open is 2, not 1"),
            (replace(FOUND, account={**FOUND.account, "leased": 1}), "leased is 1, not 0"),
            (replace(FOUND, account={"open": 1}), "misplaced is None, not 0"),
            (replace(FOUND, log=FOUND.log * 2), "run_ended is 2, not 1"),
            (replace(FOUND, log=""), "run_ended is None, not 1"),
            (
                replace(FOUND, log=FOUND.log + "hush"),
                "the log shows a secret, a recipient or a payload",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_each_difference_is_a_sentence(self, found: Found, sentence: str) -> None:
        assert sentence in differences(EXPECTED, found)

    def test_a_failure_too_few_or_too_many_is_a_difference(self) -> None:
        for failures in ([], [*FOUND.answer["batchItemFailures"], {"itemIdentifier": "3"}]):
            answer = {**FOUND.answer, "batchItemFailures": failures}
            assert len(differences(EXPECTED, replace(FOUND, answer=answer))) == 1


class TestOrder:
    def test_each_comes_after_what_it_wants_to_find(self) -> None:
        wants = {"a": "c", "b": "empty", "c": "d", "d": "due"}
        named = {name: Expected(function="f", database=want) for name, want in wants.items()}
        assert in_order(named) == ["b", "d", "c", "a"]

    def test_a_ring_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="what a wants to find"):
            in_order({"a": Expected(function="f", database="a")})
