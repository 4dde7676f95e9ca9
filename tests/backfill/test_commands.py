"""Messages into commands: what is known, what is refused, and in what words."""

import json
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.backfill.commands import command_message, continuation_message, read_command
from fencepost.core.command import (
    CommandRefused,
    Drain,
    Enqueue,
    Evidence,
    Move,
    Replay,
    S3Object,
    Word,
)

ID = "5f0c3f4e-6f4b-4b0e-9d5e-0a5d0b6f2c11"


def read(command: str, **words: Any) -> Any:
    return read_command(command_message({"command": command, "id": ID, **words}))


class TestMeaning:
    def test_enqueue(self) -> None:
        command = read("enqueue", rows=[{"recipient": "r"}, 7], channel="way")
        assert isinstance(command, Enqueue)
        assert command.rows == (b'{"recipient":"r"}', b"7")
        command = read("enqueue", s3={"bucket": "rows", "key": "k", "version": "v"}, atomic=True)
        assert (command.file, command.atomic) == (
            S3Object(bucket="rows", key="k", version="v"),
            True,
        )

    @pytest.mark.parametrize(
        ("words", "word", "kinds"),
        [
            ({}, Word.REDRIVE, ("dead",)),
            ({"resend": True}, Word.RESEND, ("dead", "uncertain")),
        ],
    )
    def test_redrive(self, words: dict[str, Any], word: Word, kinds: tuple[str, ...]) -> None:
        command = read("redrive", select={"channel": "way"}, **words)
        assert isinstance(command, Move)
        assert (command.word, command.select.kinds) == (word, kinds)

    def test_uncertain_ones_need_the_word_resend(self) -> None:
        with pytest.raises(CommandRefused, match=r"select\.kinds"):
            read("redrive", select={"kinds": ["uncertain"]})

    def test_ids_are_said_once(self) -> None:
        assert read("redrive", ids=[3, 1, 3]).ids == (3, 1)

    @pytest.mark.parametrize("word", ["delivered", "not_delivered", "dead", "resend"])
    def test_resolve(self, word: str) -> None:
        command = read("resolve", resolution=word, ids=[1], why="their log")
        assert (command.word, command.why) == (word, "their log")

    @pytest.mark.parametrize("text", ["2h", "90", "2026-11-30T10:00:00Z", "2026-11-30 10:00+01:00"])
    def test_an_end_of_a_range(self, text: str) -> None:
        assert isinstance(read("replay", select={"since": text}), Replay)

    def test_an_instant_is_said_in_utc(self) -> None:
        select = read("replay", select={"since": "2026-11-30T10:00:00+23:59"}).select
        assert select.since.at == "2026-11-29T10:01:00+00:00"

    @pytest.mark.parametrize(
        "text",
        [
            *["", "soon", "2026-11-30T10:00:00", "-5", "2026-13-01T00:00Z"],
            *["36501d", "9" * 30 + "d", "9" * 400, "0001-01-01T00:00:00+14:00"],
        ],
    )
    def test_no_end_of_a_range(self, text: str) -> None:
        with pytest.raises(CommandRefused, match=r"select\.since: an instant with its time zone"):
            read("replay", select={"since": text})

    @pytest.mark.parametrize(
        ("command", "words", "fault"),
        [
            (
                "replay",
                {"select": {"reason": "expired"}},
                r"select\.reason: delivered ones have none",
            ),
            ("replay", {"ids": []}, "ids: names none"),
            ("redrive", {"ids": []}, "ids: names none"),
            ("redrive", {"select": {"since": "1h", "until": "2h"}}, "nothing can be meant"),
            (
                "replay",
                {"select": {"since": "2026-11-30T10:00:00Z", "until": "2026-11-30T10:00:00Z"}},
                "nothing can be meant",
            ),
            ("drian", {}, "unknown command drian: known here are enqueue, "),
            ("To: a@b.example", {}, "unknown command: known here are enqueue, "),
        ],
    )
    def test_what_would_do_more_or_less_than_it_says_is_refused(
        self, command: str, words: dict[str, Any], fault: str
    ) -> None:
        with pytest.raises(CommandRefused, match=fault):
            read(command, **words)

    def test_drain_and_evidence(self) -> None:
        assert isinstance(read("drain"), Drain)
        words = {"fencepost": 1, "command": "evidence", "installation": "i", "run": ID}
        fact = {"notification": 1, "fence": 2, "outcome": "delivered", "digest": "00"}
        assert isinstance(read_command(json.dumps({**words, "facts": [fact]})), Evidence)


class TestContinuation:
    def test_it_says_the_same_with_the_next_number(self) -> None:
        first = read("enqueue", s3={"bucket": "rows", "key": "k"})
        second = read_command(continuation_message(first.label))
        third = read_command(continuation_message(second.label))  # type: ignore[union-attr]
        labels = [first.label, second.label, third.label]  # type: ignore[union-attr]
        assert [label.continuation for label in labels] == [0, 1, 2]
        assert len({(label.id, label.digest) for label in labels}) == 1

    def test_other_words_have_another_digest(self) -> None:
        one, other = read("redrive", ids=[1, 2]), read("redrive", ids=[2, 1])
        assert one.label.digest != other.label.digest


def test_a_refusal_is_one_printable_line_without_a_value() -> None:
    with pytest.raises(CommandRefused) as refused:
        read("enqueue", rows=5, s3={"bucket": "secret-bucket", "key": 7})
    assert "secret" not in str(refused.value)
    with pytest.raises(CommandRefused) as refused:
        read_command('{"version":1,"command":"re\\u001b[31m\\n%s"}' % ("x" * 1000))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 200


SECRET = "alice@example.org' - at `$.bob`"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"command": SECRET}, "unknown command: known here are"),
        (
            {"command": "resolve", "resolution": "dead", "why": " ", "ids": [1]},
            "why: it is empty",
        ),
        (
            {"command": "resolve", "resolution": SECRET, "why": "w", "ids": [1]},
            "Invalid enum value - at `$.resolution`",
        ),
        (
            {"command": "redrive", "select": {"kinds": [SECRET]}},
            "Invalid enum value - at `$.select.kinds[0]`",
        ),
        ({"command": "drain", SECRET: 1}, "Object contains unknown field"),
        (
            {"command": "redrive", "select": {SECRET: 1}},
            "Object contains unknown field - at `$.select`",
        ),
        ({"command": "drain", "now": 1}, "Object contains unknown field `now`"),
        ({"command": "redrive", "ids": [SECRET]}, "Expected `int`, got `str` - at `$.ids[0]`"),
        ({"command": "drain", "id": SECRET}, "Invalid UUID - at `$.id`"),
        ({"command": "drain", "version": SECRET}, "the message is not of version 1, the only"),
    ],
)
def test_no_value_is_repeated_only_its_place(words: dict[str, Any], reason: str) -> None:
    said = refusal(json.dumps({"version": 1, "id": ID, **words}))
    assert said is not None
    assert said.startswith(reason)
    assert "alice" not in said


@pytest.mark.parametrize("depth", [50, 400, 900, 960, 990, 1500, 50_000])
def test_however_deep_it_is_read_or_refused(depth: int) -> None:
    row = "[" * depth + "]" * depth
    nested = f'{{"version":1,"command":"enqueue","id":"{ID}","rows":[{row}]}}'
    assert refusal(nested) in (None, "the message is nested too deeply")


def refusal(body: str) -> str | None:
    try:
        read_command(body)
    except CommandRefused as refused:
        return str(refused)
    return None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = [
    "version",
    "command",
    "id",
    "rows",
    "s3",
    "select",
    "ids",
    "why",
    "continuation",
    "fencepost",
    "facts",
]


@given(
    st.dictionaries(st.sampled_from(NAMES), ANYTHING),
    st.sampled_from(["enqueue", "redrive", "replay", "evidence"]),
)
@settings(max_examples=50, deadline=None)
def test_any_json_is_a_command_or_refused(words: dict[str, Any], command: str) -> None:
    said = {"version": 1, "command": command, "id": str(uuid.uuid4()), **words}
    assert refusal(json.dumps(said)) != ""


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(CommandRefused):
        read_command(text)
