"""Facts become lines and numbers, numbers leave as the run goes, and nothing personal leaves at all (G10)."""

import json
from dataclasses import dataclass, field

import pytest

from fencepost.core.exchange import Verdict
from fencepost.core.fact import ChannelSkipped, Fact, RowsClaimed, WordSettled
from fencepost.core.line import Level, Line
from fencepost.core.notification import (
    AttemptOutcome,
    ChannelId,
    Fence,
    Held,
    Kind,
    NotificationId,
)
from fencepost.core.tally import Count, Ending, Summary
from fencepost.telemetry import (
    NAMESPACE,
    Numbers,
    Telemetry,
    embedded_metrics,
    json_lines,
    plain_lines,
)
from tests.engine.fakes import RUN, channel

CLAIMED = RowsClaimed(
    channel=ChannelId(1), count=5, taken_over=1, in_doubt=2, oldest_due_seconds=33.5
)
DELIVERED = WordSettled(
    channel=ChannelId(1),
    held=Held(NotificationId(7), Fence(3)),
    outcome=AttemptOutcome.DELIVERED,
    kind=Kind.DELIVERED,
    verdict=Verdict.APPLIED,
    reason=None,
    took_ms=12,
)


@dataclass
class Bench:
    """Telemetry with everything it says in hand."""

    now: float = 0.0
    lines: list[Line] = field(default_factory=list)
    flushed: list[Numbers] = field(default_factory=list)

    def telemetry(self) -> Telemetry:
        return Telemetry(
            run=RUN,
            correlation="event-1",
            lines=self.lines.append,
            metrics=lambda numbers, run: self.flushed.append(numbers),
            clock=lambda: self.now,
        )


def test_every_line_is_tied_to_its_run_and_its_event() -> None:
    bench = Bench()
    bench.telemetry().report(CLAIMED)
    assert bench.lines[0].particulars["run_id"] == str(RUN)
    assert bench.lines[0].particulars["correlation_id"] == "event-1"


def test_lines_say_the_names_of_the_channels_the_run_began_with() -> None:
    bench = Bench()
    telemetry = bench.telemetry()
    telemetry.know([channel(1, name="push")])
    telemetry.report(CLAIMED)
    telemetry.report(ChannelSkipped(channel=ChannelId(1), reason="no secret"))
    assert [line.particulars["channel"] for line in bench.lines] == ["push", "push"]
    assert telemetry.skipped == ("push",)


def test_a_run_that_is_killed_has_told_all_but_its_last_second() -> None:
    bench = Bench()
    telemetry = bench.telemetry()
    telemetry.report(CLAIMED)
    assert bench.flushed == []
    bench.now = 1.0
    telemetry.report(DELIVERED)
    assert bench.flushed[0].counts[Count.CLAIMED] == 5
    assert bench.flushed[0].counts[Count.DELIVERED] == 1
    assert bench.flushed[0].oldest_due_seconds == 33.5
    assert bench.flushed[0].send_milliseconds == [12]


def test_no_number_is_flushed_twice() -> None:
    bench = Bench()
    telemetry = bench.telemetry()
    for second in range(5):
        bench.now = float(second)
        telemetry.report(DELIVERED)
    telemetry.flush()
    telemetry.flush()
    assert sum(numbers.counts[Count.DELIVERED] for numbers in bench.flushed) == 5
    assert telemetry.tally.counts[Count.DELIVERED] == 5


def test_latencies_leave_before_they_are_too_many_for_one_record() -> None:
    bench = Bench()
    telemetry = bench.telemetry()
    for _ in range(250):
        telemetry.report(DELIVERED)
    telemetry.flush()
    lengths = [len(numbers.send_milliseconds) for numbers in bench.flushed]
    assert sum(lengths) == 250
    assert max(lengths) < 100, "with the hundredth, Powertools prints the record by itself"


def test_an_idle_tick_says_that_the_oldest_is_not_late() -> None:
    bench = Bench()
    bench.telemetry().ended(summary(Ending.IDLE))
    assert bench.flushed[0].oldest_due_seconds == 0.0
    assert bench.lines[-1].action == "run_ended"


@pytest.mark.parametrize("paused", [0, 2])
def test_paused_channels_are_a_number_of_every_run_that_knows_it(paused: int) -> None:
    bench = Bench()
    bench.telemetry().ended(summary(Ending.DRAINED), paused_channels=paused)
    written: list[str] = []
    embedded_metrics(written.append, "production")(bench.flushed[0], "run-1")
    record = json.loads(written[0])
    assert (record["PausedChannels"], record["service"]) == ([float(paused)], "production")


def test_paused_channels_that_nobody_counted_are_no_number() -> None:
    bench = Bench()
    bench.telemetry().ended(summary(Ending.DRAINED))
    assert bench.flushed == []


def test_what_was_left_unsaid_ends_the_run_as_an_error() -> None:
    bench = Bench()
    bench.telemetry().ended(summary(Ending.UNSAID, unsaid=3))
    assert bench.lines[-1].level is Level.ERROR


def test_embedded_metrics_are_what_cloudwatch_reads() -> None:
    written: list[str] = []
    numbers = Numbers()
    for fact in (CLAIMED, DELIVERED, DELIVERED):
        numbers.add(fact)
    embedded_metrics(written.append)(numbers, "run-1")
    record = json.loads(written[0])
    described = record["_aws"]["CloudWatchMetrics"][0]
    assert described["Namespace"] == NAMESPACE
    assert described["Dimensions"] == [["service"]]
    assert {"Name": "SendLatency", "Unit": "Milliseconds"} in described["Metrics"]
    assert {"Name": "OldestDueAge", "Unit": "Seconds"} in described["Metrics"]
    assert record["SendLatency"] == [12.0, 12.0]
    assert (record["Claimed"], record["Delivered"], record["TakenOver"]) == ([5.0], [2.0], [1.0])
    assert record["run_id"] == "run-1"


def test_json_lines_carry_their_action(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
    json_lines(service="test-json-lines")(Line(Level.WARNING, "claimed", {"count": 5}))
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["action"], line["count"]) == ("WARNING", "claimed", 5)
    assert "location" not in line


def test_plain_lines_leave_out_what_is_below_their_level() -> None:
    written: list[str] = []
    say = plain_lines(written.append, Level.WARNING)
    for level in Level:
        say(Line(level, "claimed", {"count": 5}))
    assert written == ["WARNING claimed count=5", "ERROR   claimed count=5"]


def test_facts_have_no_room_for_recipients_or_payloads() -> None:
    names = {name for fact in Fact.__args__ for name in fact.__struct_fields__}
    assert not names & {"recipient", "payload", "secret", "body", "url"}


def summary(ended: Ending, unsaid: int = 0) -> Summary:
    return Summary(run=str(RUN), ended=ended, counts=dict.fromkeys(Count, 0), unsaid=unsaid)
