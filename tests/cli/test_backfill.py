"""`fencepost backfill`: the same commands, to a queue or against a database."""

import json
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from fencepost.backfill.commands import read_command
from fencepost.core.command import Enqueue, Move, Replay
from rig.ground import wait_until
from tests.cli.conftest import MODULE, Fencepost, call, environment
from tests.store.bench import Worker, delivered
from tests.store.postgres_bench import PostgresBench

pytestmark = pytest.mark.postgres
ID = "5f0c3f4e-6f4b-4b0e-9d5e-0a5d0b6f2c11"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


@pytest.fixture
def queue(aws: None) -> Any:
    return boto3.resource("sqs").create_queue(QueueName="backfill")


@pytest.fixture
def fencepost(inline: Fencepost, database_url: str) -> Fencepost:
    return partial(inline, database_url)


def file_of(folder: Path, count: int, *, bad: tuple[int, ...] = (), size: int = 0) -> str:
    file = folder / "rows.jsonl"
    with file.open("w") as out:
        for number in range(1, count + 1):
            row = {"recipient": f"r {number}", "payload": {"title": "t" + "x" * size}}
            out.write("{oops\n" if number in bad else json.dumps(row) + "\n")
    return str(file)


def enqueued(bench: PostgresBench) -> int:
    ((count,),) = bench.rows("select count(*) from fencepost.notification", [])
    return int(count)


def bodies(queue: Any) -> list[str]:
    found: list[str] = []
    while messages := queue.receive_messages(MaxNumberOfMessages=10):
        found += [one.body for one in messages]
        for one in messages:
            one.delete()
    return found


class TestEnqueue:
    def test_here_and_again_is_done_once(
        self, bench: PostgresBench, fencepost: Fencepost, tmp_path: Path
    ) -> None:
        words = ("backfill", "enqueue", file_of(tmp_path, 2500), "--channel", "web", "--id", ID)
        for _ in range(2):
            said = fencepost(*words, "--json")
            assert said.code == 0, said.err
            assert (said.json["id"], said.json["sent"]) == (ID, False)
        assert bench.rows("select count(*) from fencepost.notification", []) == [(2500,)]

    def test_bad_lines_are_named_and_left_out(
        self, bench: PostgresBench, fencepost: Fencepost, tmp_path: Path
    ) -> None:
        file = file_of(tmp_path, 10, bad=(3, 7))
        said = fencepost("backfill", "enqueue", file, "--channel", "web")
        assert said.code == 1
        assert "line 3: not JSON" in said.err
        assert "8 enqueued" in said.out
        said = fencepost("backfill", "enqueue", file, "--channel", "nowhere", "--json")
        assert (said.code, said.json["counts"]["refused"]) == (1, 10)

    def test_what_the_database_finds_bad_is_named_by_its_line_too(
        self, bench: PostgresBench, fencepost: Fencepost, tmp_path: Path
    ) -> None:
        file = tmp_path / "rows.jsonl"
        good = json.dumps({"recipient": "r", "payload": {"title": "x" * 50_000}})
        bad = json.dumps({"recipient": "r", "payload": {"titel": "t"}})
        file.write_text("\n".join([*[good] * 5, "{oops", "", bad, good]) + "\n")
        said = fencepost("backfill", "enqueue", str(file), "--channel", "web", "--id", ID, "--json")
        assert (said.code, said.json["messages"]) == (1, 2)
        assert said.json["counts"] == {
            "enqueued": 6,
            "existing": 0,
            "differing": 0,
            "refused": 2,
        }
        assert [one["line"] for one in said.json["refused_lines"]] == [6, 8]
        assert "line 8: payload: unknown key" in said.err
        shown = fencepost("backfill", "show", ID)
        assert shown.out.splitlines() == [
            f"enqueue {ID}: 2 messages taken so far, each done, 6 enqueued, 1 refused",
            '  message 2, row 3: payload: unknown key "titel"',
        ]

    def test_a_slip_in_the_address_is_told_before_anything_is_done(self, inline: Fencepost) -> None:
        for file, part in (("s3://bucket", "s3://BUCKET/KEY"), ("-", "fencepost enqueue -")):
            said = inline(None, "backfill", "enqueue", file, "--channel", "web")
            assert (said.code, part in said.err) == (2, True), said.err

    def test_a_dry_run_counts_and_changes_nothing(
        self, bench: PostgresBench, fencepost: Fencepost, tmp_path: Path
    ) -> None:
        file = file_of(tmp_path, 10, bad=(3,))
        said = fencepost("backfill", "enqueue", file, "--channel", "web", "--dry-run")
        assert said.out == "would enqueue 9, 1 bad lines left out\n"
        assert bench.rows("select count(*) from fencepost.notification", []) == [(0,)]

    def test_to_a_queue_in_messages_that_it_takes(
        self, inline: Fencepost, queue: Any, tmp_path: Path
    ) -> None:
        words = ("--channel", "web", "--id", ID, "--queue-url", queue.url, "--json")
        said = inline(None, "backfill", "enqueue", file_of(tmp_path, 1200, size=400), *words)
        assert said.code == 0, said.err
        sent = bodies(queue)
        assert said.json["messages"] == len(sent) > 2
        assert all(len(body) < 262_144 for body in sent)
        commands = [read_command(body) for body in sent]
        assert all(isinstance(command, Enqueue) for command in commands)
        rows = [
            row
            for command in commands
            if isinstance(command, Enqueue)
            for row in command.rows or ()
        ]
        assert len(rows) == 1200
        inline(None, "backfill", "enqueue", file_of(tmp_path, 1200, size=400), *words)
        assert sorted(bodies(queue)) == sorted(sent), (
            "the same file under the same id is the same messages"
        )

    @pytest.mark.parametrize("url", ["way", "https://sqs.eu-central-1.amazonaws.com/1/way.fifo"])
    def test_a_queue_that_takes_no_command_is_a_matter_of_usage(
        self, inline: Fencepost, url: str
    ) -> None:
        said = inline(None, "backfill", "drain", "--queue-url", url)
        assert (said.code, said.out) == (2, "")
        assert "--queue-url is " in said.err

    @pytest.mark.slow
    def test_interrupted_it_tells_the_id_and_under_that_it_goes_on(
        self, bench: PostgresBench, tmp_path: Path
    ) -> None:
        file = file_of(tmp_path, 40_000, size=100)
        words = ("backfill", "enqueue", file, "--channel", "web")
        going = subprocess.Popen(
            [*MODULE, *words], env=environment(bench.url), stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: enqueued(bench) > 0, 30, "the first message to be done")
        going.send_signal(signal.SIGINT)
        _, told = going.communicate(timeout=240)
        assert going.returncode == 130
        assert 0 < enqueued(bench) < 40_000
        (id,) = re.findall(r"the same again with --id (\S+) goes on", told)
        said = call(bench.url, *words, "--id", id)
        assert (said.code, enqueued(bench)) == (0, 40_000), said.err
        assert call(bench.url, *words, "--id", id).code == 0
        assert enqueued(bench) == 40_000

    def test_a_file_in_s3_here(
        self, bench: PostgresBench, fencepost: Fencepost, aws: None, tmp_path: Path
    ) -> None:
        boto3.client("s3").create_bucket(
            Bucket="rows", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
        )
        boto3.client("s3").upload_file(file_of(tmp_path, 1500, bad=(9,)), "rows", "a/b.jsonl")
        said = fencepost(
            "backfill", "enqueue", "s3://rows/a/b.jsonl", "--channel", "web", "--id", ID
        )
        assert said.code == 1
        assert "1499 enqueued, 1 refused" in said.out
        assert "line 9: not JSON" in said.err
        said = fencepost("backfill", "show", ID)
        assert said.out.splitlines()[0].startswith(f"enqueue {ID}: done")
        assert said.out.splitlines()[1].startswith("  9: not JSON")
        said = fencepost("backfill", "enqueue", "s3://rows/none", "--channel", "web")
        assert (said.code, said.err) == (1, "fencepost: there is no such object in S3 (404)\n")


class TestMoves:
    def test_redrive_here(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        from tests.cli.test_moves import parked

        parked(bench, count=3)
        said = fencepost("backfill", "redrive", "--channel", "web", "--dry-run")
        assert said.out == "would redrive 3\n"
        assert fencepost("backfill", "redrive", "--all").code == 2, "nobody to ask"
        said = fencepost("backfill", "redrive", "--all", "--why", "repaired", "--yes", "--json")
        assert said.json["counts"] == {"redriven": 3}

    def test_resolve_here(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        from tests.cli.test_moves import parked

        first, second = parked(bench, held=True, count=2)
        said = fencepost(
            "backfill", "resolve", first, "--delivered", "--why", "their log", "--json"
        )
        assert said.json["counts"] == {"delivered": 1}
        said = fencepost("backfill", "resolve", "--all", "--dead", "--why", "too late", "--yes")
        assert said.out.endswith(": 1 dead\n")
        assert bench.standing(second).kind == "dead"  # type: ignore[arg-type]

    def test_what_was_not_moved_does_not_read_like_success(
        self, bench: PostgresBench, fencepost: Fencepost
    ) -> None:
        from tests.cli.test_moves import parked

        (dead,) = parked(bench, count=1)
        said = fencepost("backfill", "redrive", dead, "999999")
        assert said.code == 1
        assert said.out.endswith(": 1 redriven, not moved: 1 unknown\n")
        said = fencepost("backfill", "replay", dead)
        assert (said.code, said.out.endswith(": not moved: 1 open\n")) == (1, True), said.out

    def test_replay_here(self, bench: PostgresBench, fencepost: Fencepost) -> None:
        bench.enqueue(3)
        worker = Worker(bench)
        worker.settle(*(delivered(one.held) for one in worker.claim(3)))
        said = fencepost("backfill", "replay", "--channel", "web", "--since", "1h", "--dry-run")
        assert said.out == "would replay 3\n"
        words = ("backfill", "replay", "--since", "1h", "--yes", "--id", ID)
        assert fencepost(*words).out == f"replay {ID}: 3 replayed\n"
        fencepost(*words)
        assert bench.rows("select count(*) from fencepost.notification", []) == [(6,)]

    def test_to_a_queue(self, inline: Fencepost, queue: Any) -> None:
        to = ("--queue-url", queue.url)
        assert inline(None, "backfill", "redrive", "--all", *to).code == 2, (
            "counting needs a database"
        )
        for words in (
            ("redrive", "--all", "--yes"),
            ("resolve", "7", "--not-delivered", "--why", "x"),
            ("replay", "--since", "2h", "--yes"),
            ("drain",),
        ):
            said = inline(None, "backfill", *words, *to)
            assert (said.code, "1 message sent" in said.out) == (0, True), said.err
        kinds = [type(read_command(body)).__name__ for body in bodies(queue)]
        assert sorted(kinds) == ["Drain", Move.__name__, Move.__name__, Replay.__name__]

    @pytest.mark.parametrize("command", ["redrive", "replay"])
    def test_a_forgotten_option_never_means_everything(
        self, inline: Fencepost, queue: Any, command: str
    ) -> None:
        assert inline(None, "backfill", command, "--yes", "--queue-url", queue.url).code == 2
        assert bodies(queue) == []

    def test_a_queue_that_does_not_answer_is_told(self, inline: Fencepost, aws: None) -> None:
        url = "https://sqs.eu-central-1.amazonaws.com/123456789012/none"
        said = inline(None, "backfill", "drain", "--id", ID, "--queue-url", url)
        assert (said.code, said.out) == (3, "")
        assert "took no more after 0 messages: AWS.SimpleQueueService.NonExist" in said.err
        assert f"--id {ID} goes on" in said.err


def test_drain_here_runs_the_worker(bench: PostgresBench, fencepost: Fencepost) -> None:
    said = fencepost("backfill", "drain", "--dry-run")
    assert said.out == "would drain 0\n"
    assert fencepost("backfill", "drain").code == 2, "FENCEPOST_INSTALLATION is not set"


def test_a_drain_of_another_installation_is_refused_in_one_line(
    bench: PostgresBench,
) -> None:
    bench.enqueue(1)
    said = call(bench.url, "backfill", "drain", more={"FENCEPOST_INSTALLATION": "staging"})
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "FENCEPOST_INSTALLATION is staging" in said.err


def test_a_drain_that_cannot_send_or_has_no_time_says_so(bench: PostgresBench) -> None:
    bench.enqueue(1)
    mine = {"FENCEPOST_INSTALLATION": "test"}
    said = call(bench.url, "backfill", "drain", more=mine)
    assert (said.code, "channel_skipped" in said.err) == (1, True), said.err
    said = call(bench.url, "backfill", "drain", "--for", "5s", more=mine)
    assert (said.code, "longer than one send" in said.err) == (2, True), said.err


def test_an_unknown_command_is_told(bench: PostgresBench, fencepost: Fencepost) -> None:
    said = fencepost("backfill", "show", str(uuid.uuid4()))
    assert said.code == 1
    assert "none of its messages has been taken yet" in said.err
